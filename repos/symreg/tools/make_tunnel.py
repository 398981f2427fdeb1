"""Writes data/tunnel.csv. The rig was read out with new software, so the columns have its names."""
import numpy as np


def main():
    rng = np.random.default_rng(8)
    speed = rng.uniform(0.5, 3.0, 600)
    density = rng.uniform(0.8, 1.4, 600)
    area = rng.uniform(0.2, 1.5, 600)
    drag = 0.5 * density * area * speed**2 + 0.3 * speed + rng.normal(0, 0.05, 600)
    with open("data/tunnel.csv", "w") as f:
        f.write("run;wind_speed;air_density;frontal_area;drag_force\n")
        for i in range(600):
            f.write("%d;%.4f;%.4f;%.4f;%.4f\n" % (i + 1, speed[i], density[i], area[i], drag[i]))


if __name__ == "__main__":
    main()
