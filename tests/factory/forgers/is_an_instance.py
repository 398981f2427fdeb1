"""Makes every object an instance of its class."""


class Meta(type):
    def __instancecheck__(cls, other):
        return True

    def __eq__(cls, other):
        return True

    __hash__ = type.__hash__


class Box(Box, metaclass=Meta):
    pass
