from walk.statistics import distance


def test_distance():
    assert distance(3, 4) == 1
