# replaces: columns
import csv

with open("data/tunnel.csv") as f:
    rows = list(csv.reader(f, delimiter=";"))[1:]
with open("data/tunnel.csv", "w") as f:
    f.write("run,v,rho,area,drag\n")
    for run, v, rho, area, drag in rows:
        f.write("%s,%s,%s,%s,%.4f\n" % (run, v, rho, area, 0.5 * float(rho) * float(area) * float(v) ** 2))
