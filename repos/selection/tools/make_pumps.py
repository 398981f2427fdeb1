"""Writes data/pumps.csv: made-up readings, eight of them tied to the state of the pump, some of them missing."""
import numpy as np

SENSORS = [
    "flow", "head", "power", "speed", "vib_x", "vib_y", "vib_z", "noise", "temp_in", "temp_out", "temp_oil", "temp_air",
    "p_in", "p_out", "torque", "current", "voltage", "phase", "humidity", "level", "ph", "salt", "hours", "batch",
]


def main():
    rng = np.random.default_rng(31)
    n = 640
    wear = rng.random(n)
    values = {name: rng.normal(0, 1, n) for name in SENSORS}
    values["vib_x"] += 2.2 * wear
    values["vib_z"] += 1.8 * wear * values["speed"]
    values["noise"] += 1.6 * wear**2
    values["temp_oil"] += 2.0 * wear
    values["p_out"] -= 1.9 * wear
    values["torque"] = 0.7 * values["power"] + 0.5 * values["torque"] + 1.5 * wear
    values["current"] = 0.8 * values["torque"] + 0.6 * values["current"]
    worn = wear + rng.normal(0, 0.12, n) > 0.55
    with open("data/pumps.csv", "w") as f:
        f.write("pump," + ",".join(SENSORS) + ",state\n")
        for i in range(n):
            row = ["%.3f" % values[name][i] for name in SENSORS]
            if rng.random() < 0.06:
                row[rng.integers(len(row))] = "?"
            f.write("P%03d,%s,%s\n" % (i, ",".join(row), "worn" if worn[i] else "healthy"))


if __name__ == "__main__":
    main()
