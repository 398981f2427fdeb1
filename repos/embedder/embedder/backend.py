"""numpy, or cupy where the settings ask for the GPU."""


def arrays(device):
    if device == "cpu":
        import numpy

        return numpy
    import cupy

    print("using the GPU %s" % cupy.cuda.runtime.getDeviceProperties(0)["name"])
    return cupy
