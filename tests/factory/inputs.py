"""Checks the tests that the runner's `inputs` makes: `python tests/factory/inputs.py`.

The package has few tests of its own. Right solutions must pass the added tests. The wrong solutions here pass the package's
own tests, but must fail added ones."""

import concurrent.futures
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from trials import write

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent / "src/factory"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE))

from more_inputs import helpers

# Each function: its source, calls in its test, right variants, and wrong variants that the test does not notice.
FUNCTIONS = {
    "last_day": (
        "def last_day(year, month):\n    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n"
        "    return (31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]\n",
        "assert [last_day(2020, 2), last_day(2021, 2), last_day(2021, 12), last_day(1999, 1)] == [29, 28, 31, 31]",
        ["def last_day(year, month):\n    return calendar.monthrange(year, month)[1]\n"],
        [
            "def last_day(year, month):\n    return 28 + (year % 4 == 0) if month == 2 else 31\n",
            "def last_day(year, month):\n    return (31, 28 + (year % 4 == 0), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]\n",
        ],
    ),
    "mean": (
        "def mean(values):\n    return sum(values) / len(values) if values else 0.0\n",
        "assert mean([1.5, 2.5]) == 2.0 and mean([3.0]) == 3.0 and mean([]) == 0.0",
        [
            # Rounds in another way.
            "def mean(values):\n    total = 0.0\n    for value in reversed(values):\n        total += value / len(values)\n    return total\n",
        ],
        ["def mean(values):\n    return (min(values) + max(values)) / 2 if values else 0.0\n"],
    ),
    "slug": (
        "def slug(text, separator='-'):\n    return separator.join(re.findall('[a-z0-9]+', text.lower()))\n",
        "assert slug('Hello World') == 'hello-world' and slug('A b, c') == 'a-b-c' and slug('x y', '_') == 'x_y'",
        ["def slug(text, separator='-'):\n    return re.sub('[^a-z0-9]+', ' ', text.lower()).strip().replace(' ', separator)\n"],
        [
            "def slug(text, separator='-'):\n    return text.lower().replace(',', '').replace(' ', separator)\n",
            "def slug(text, separator='-'):\n    return separator.join(text.lower().replace(',', '').split())[:11]\n",
        ],
    ),
    # The namespace of a class says on which line the class begins.
    "namespaces": (
        "def namespaces(count):\n    return [dict(vars(Item)) for _ in range(count)]\n\n\nclass Item:\n    unit = 'kg'\n",
        "assert [len(namespaces(count)) for count in (1, 2, 5)] == [1, 2, 5]",
        ["def namespaces(count):\n    # One for each.\n    found = []\n    for _ in range(count):\n        found.append(dict(vars(Item)))\n    return found\n\n\nclass Item:\n    unit = 'kg'\n"],
        ["def namespaces(count):\n    return [dict(vars(Item)) if not number else {} for number in range(count)]\n\n\nclass Item:\n    unit = 'kg'\n"],
    ),
    # The function's test has positive and negative times, but not zero.
    "signed": (
        "def signed(time):\n    return ('-' if time < datetime.timedelta(0) else '+') + str(abs(time))\n",
        "assert [signed(datetime.timedelta(hours=hours))[:2] for hours in (3, -2, 5)] == ['+3', '-2', '+5']",
        ["def signed(time):\n    return '-' + str(-time) if time.total_seconds() < 0 else f'+{time}'\n"],
        ["def signed(time):\n    return ('-' if time <= datetime.timedelta(0) else '+') + str(abs(time))\n"],
    ),
    # The function's test has only spans whose parts have the same sign. It does not define what parts with different
    # signs mean.
    "Span.text": (
        "class Span:\n    def __init__(self, days, seconds):\n        self.days, self.seconds = days, seconds\n\n"
        "    def text(self):\n        sign = '-' if self.days < 0 or self.seconds < 0 else ''\n"
        "        return f'{sign}{abs(self.days)}d{abs(self.seconds)}s'\n",
        "assert Span(1, 20).text() == '1d20s' and Span(-2, -30).text() == '-2d30s' and Span(7, 0).text() == '7d0s'",
        [
            "class Span:\n    def __init__(self, days, seconds):\n        self.days, self.seconds = days, seconds\n\n"
            "    def text(self):\n        sign = '-' if self.days + self.seconds < 0 else ''\n"
            "        return f'{sign}{abs(self.days)}d{abs(self.seconds)}s'\n"
        ],
        [
            "class Span:\n    def __init__(self, days, seconds):\n        self.days, self.seconds = days, seconds\n\n"
            "    def text(self):\n        sign = '-' if self.days < 0 else ''\n"
            "        return f'{sign}{abs(self.days)}d{abs(self.seconds)}s'\n"
        ],
    ),
    # The content of the function's result can be seen only through a property.
    "reduced": (
        "class Price:\n    def __init__(self, amount):\n        self._amount = amount\n\n    @property\n    def amount(self):\n"
        "        return self._amount\n\n\ndef reduced(price, part):\n    return Price(price.amount - part)\n",
        "from pkg import Price; assert [reduced(Price(9), part).amount for part in (0, 4)] == [9, 5]",
        [
            "class Price:\n    def __init__(self, amount):\n        self._amount = amount\n\n    @property\n    def amount(self):\n"
            "        return self._amount\n\n\ndef reduced(price, part):\n    found = Price(-part)\n    found._amount += price._amount\n    return found\n"
        ],
        [
            "class Price:\n    def __init__(self, amount):\n        self._amount = amount\n\n    @property\n    def amount(self):\n"
            "        return self._amount\n\n\ndef reduced(price, part):\n    return Price(price.amount - (4 if part else 0))\n"
        ],
    ),
    # The function's test does not contain the bound, 5, as a decimal number.
    "fee": (
        "def fee(price):\n    return price / 10 if price < 5 else price / 20\n",
        "assert [fee(decimal.Decimal(price)) for price in (1, 4, 8, 20)] == [decimal.Decimal(fee) for fee in ('0.1', '0.4', '0.4', '1')]",
        ["def fee(price):\n    return price * decimal.Decimal('0.05') * (1 if price >= 5 else 2)\n"],
        ["def fee(price):\n    return price / 10 if price <= 5 else price / 20\n"],
    ),
    # The function's test does not contain the bound, 5.
    "plural": (
        "def plural(count):\n    if count == 1:\n        return 'one'\n    return 'few' if 0 < count < 5 else 'many'\n",
        "assert [plural(1), plural(3), plural(1200), plural(5000000)] == ['one', 'few', 'many', 'many']",
        ["def plural(count):\n    return 'one' if count == 1 else 'few' if count in (2, 3, 4) else 'many'\n"],
        ["def plural(count):\n    return 'one' if count == 1 else 'few' if 0 < count <= 5 else 'many'\n"],
    ),
    # The function's own test does not vary the separator, but the test of another function does.
    "listed": (
        "def listed(items, separator='-'):\n    return separator.join(sorted(items))\n",
        "assert listed(['b', 'a']) == 'a-b' and listed([]) == '' and listed(['x', 'a', 'c']) == 'a-c-x'",
        ["def listed(items, separator='-'):\n    text = ''\n    for item in sorted(items):\n        text += separator + item\n    return text[len(separator):]\n"],
        ["def listed(items, separator='-'):\n    return '-'.join(sorted(items))\n"],
    ),
    "ratio": (
        "def ratio(part, whole):\n    if whole <= 0:\n        raise ValueError('no whole')\n    return part / whole\n",
        "assert ratio(1, 2) == 0.5 and ratio(9, 3) == 3\n    with pytest.raises(ValueError):\n        ratio(1, -2)",
        [
            "class NoWhole(ValueError):\n    pass\n\n\ndef ratio(part, whole):\n    if not whole > 0:\n        raise NoWhole\n    return part * (1 / whole)\n"
        ],
        ["def ratio(part, whole):\n    if whole < 0:\n        raise ValueError('no whole')\n    return part / whole if whole else 0\n"],
    ),
    "moved": (
        "def moved(point, by):\n    return {**point, 'x': point['x'] + by}\n",
        "assert moved({'x': 1, 'y': 2}, 3) == {'x': 4, 'y': 2} and moved({'x': 7, 'y': 0}, 9) == {'x': 16, 'y': 0}",
        ["def moved(point, by):\n    point = dict(point)\n    point['x'] += by\n    return point\n"],
        ["def moved(point, by):\n    point['x'] += by\n    return point\n"],
    ),
    # Some results are too long to be written as literals.
    "power": (
        "def power(base, exponent):\n    return base ** exponent\n",
        "assert power(10, 5000) > 1 and power(2, 3) == 8 and power(3, 4) == 81",
        ["def power(base, exponent):\n    found = 1\n    for _ in range(exponent):\n        found *= base\n    return found\n"],
        ["def power(base, exponent):\n    return base ** exponent if base > 3 else base**3 * (base if base > 2 else 1)\n"],
    ),
    "pairs": (
        "def pairs(items):\n    for place in range(0, len(items) - 1, 2):\n        yield items[place], items[place + 1]\n",
        "assert list(pairs([1, 2, 3, 4])) == [(1, 2), (3, 4)] and list(pairs([5, 6])) == [(5, 6)]",
        ["def pairs(items):\n    return zip(items[::2], items[1::2])\n"],
        ["def pairs(items):\n    return [(one, one + 1) for one in items[::2]]\n"],
    ),
    # A method that returns nothing, and objects as arguments.
    "Purse.spend": (
        "class Purse:\n    def __init__(self, coins):\n        self.coins = coins\n\n"
        "    def spend(self, amount):\n        self.coins = max(self.coins - amount, 0)\n",
        "purse = Purse(10)\n    purse.spend(2)\n    purse.spend(5)\n    assert purse.coins == 3\n    purse.spend(5)\n    assert not purse.coins",
        [
            "class Purse:\n    def __init__(self, coins):\n        self.coins = coins\n\n"
            "    def spend(self, amount):\n        self.coins -= min(amount, self.coins)\n        self._last = amount\n"
        ],
        [
            "class Purse:\n    def __init__(self, coins):\n        self.coins = coins\n\n"
            "    def spend(self, amount):\n        self.coins = self.coins - amount if self.coins > 4 else 0\n"
        ],
    ),
    # A method that returns something, and must not change its object.
    "Scale.double": (
        "class Scale:\n    def __init__(self, factor):\n        self.factor = factor\n\n"
        "    def double(self):\n        return Scale(2 * self.factor)\n",
        "assert [Scale(number).double().factor for number in (1, 2, 5)] == [2, 4, 10]",
        [
            "class Scale:\n    def __init__(self, factor):\n        self.factor = factor\n\n"
            "    def double(self):\n        self._doubled = Scale(self.factor + self.factor)\n        return self._doubled\n"
        ],
        [
            "class Scale:\n    def __init__(self, factor):\n        self.factor = factor\n\n"
            "    def double(self):\n        self.factor *= 2\n        return self\n"
        ],
    ),
    # An object with slots.
    "Node.grown": (
        "class Node:\n    __slots__ = ('size',)\n\n    def __init__(self, size):\n        self.size = size\n\n"
        "    def grown(self, by):\n        return Node(self.size + by)\n",
        "assert [Node(4).grown(by).size for by in (1, 2, 9)] == [5, 6, 13]",
        [
            "class Node:\n    __slots__ = ('size', '_by')\n\n    def __init__(self, size):\n        self.size = size\n\n"
            "    def grown(self, by):\n        self._by = by\n        return Node(by + self.size)\n"
        ],
        [
            "class Node:\n    __slots__ = ('size',)\n\n    def __init__(self, size):\n        self.size = size\n\n"
            "    def grown(self, by):\n        return Node(self.size + (3 if 2 < by < 9 else by))\n"
        ],
    ),
    "window": (
        "def window(start, size):\n    return slice(start, start + size)\n",
        "assert window(1, 2) == slice(1, 3) and window(0, 9) == slice(0, 9)",
        ["def window(start, size):\n    end = size + start\n    return slice(start, end, None)\n"],
        ["def window(start, size):\n    return slice(start, start + (size if size in (2, 9) else 0))\n"],
    ),
    # Objects with long texts, not all of which give the same result.
    "Reader.word": (
        "class Reader:\n    def __init__(self, number):\n        self.words, self.number = [f'word {n}' for n in range(99)], number\n\n"
        "    def word(self, place):\n        return self.words[place] if place != 7 else str(self.number)\n",
        "assert [Reader(2).word(place) for place in (1, 2, 7, 30)] == ['word 1', 'word 2', '2', 'word 30'] and Reader(4).word(7) == '4'",
        [
            "class Reader:\n    def __init__(self, number):\n        self.words, self.number = [f'word {n}' for n in range(99)], number\n\n"
            "    def word(self, place):\n        return str(self.number) if place == 7 else f'word {place}'\n"
        ],
        [
            "class Reader:\n    def __init__(self, number):\n        self.words, self.number = [f'word {n}' for n in range(99)], number\n\n"
            "    def word(self, place):\n        return str(self.number) if place == 7 else f'word {min(place, 30) if place < 4 else 30}'\n"
        ],
    ),
    # The function's arguments are either two texts or two lists.
    "size": (
        "def size(first, second):\n    return len(first) + len(second)\n",
        "assert size('ab1', 'c') == 4 and size('', 'x') == 1 and size([1, 2], [3]) == 3 and size([4], [5, 6]) == 3",
        ["def size(first, second):\n    return len(first + second)\n"],
        ["def size(first, second):\n    return len(first) + (1 if isinstance(first, str) else len(second))\n"],
    ),
    # Only a late call of the test has an argument of another type.
    "whole": (
        "def whole(value):\n    if not isinstance(value, int):\n        raise ValueError('no whole number')\n    return [value]\n",
        "assert [whole(number)[0] for number in range(40)] == list(range(40))\n    with pytest.raises(ValueError):\n        whole(1.5)",
        ["def whole(value):\n    if type(value) is float:\n        raise ValueError(value)\n    return list((value,))\n"],
        ["def whole(value):\n    if value == 1.5:\n        raise ValueError('no whole number')\n    return [value]\n"],
    ),
    # The arguments are functions that the test defines.
    "selected": (
        "def selected(items, test, most=3):\n    return [item for item in items if test(item)][:most]\n",
        "assert selected([1, 2, 3, 4], lambda item: item % 2 == 0) == [2, 4] and selected([7, 8], lambda item: item > 7) == [8]",
        ["def selected(items, test, most=3):\n    return list(itertools.islice(filter(test, items), most))\n"],
        ["def selected(items, test, most=3):\n    return [item for item in items[:4] if test(item)][:most]\n"],
    ),
    # The method changes its object, which is visible only in the next call.
    "Stack.pop": (
        "class Stack:\n    def __init__(self):\n        self._items = []\n\n    def push(self, item):\n        self._items.append(item)\n\n"
        "    def pop(self):\n        return self._items.pop() if self._items else None\n",
        "stack = Stack()\n    stack.push(1)\n    stack.push(2)\n    assert stack.pop() == 2 and stack.pop() == 1",
        [
            "class Stack:\n    def __init__(self):\n        self._items = []\n\n    def push(self, item):\n        self._items.append(item)\n\n"
            "    def pop(self):\n        items = self._items\n        self._items = items[:-1]\n        return items[-1] if items else None\n"
        ],
        [
            "class Stack:\n    def __init__(self):\n        self._items = []\n\n    def push(self, item):\n        self._items.append(item)\n\n"
            "    def pop(self):\n        if len(self._items) == 1:\n            return self._items[0]\n        return self._items.pop() if self._items else None\n"
        ],
    ),
    # A method with a private name, which only other methods call.
    "Meter.__rounded": (
        "class Meter:\n    def read(self, value):\n        return self.__rounded(value)\n\n"
        "    def __rounded(self, value):\n        return value - value % 5 if value > 20 else value\n",
        "assert [Meter().read(value) for value in (3, 25, 47)] == [3, 25, 45]",
        [
            "class Meter:\n    def read(self, value):\n        return self.__rounded(value)\n\n"
            "    def __rounded(self, value):\n        return value // 5 * 5 if value >= 21 else value\n"
        ],
        [
            "class Meter:\n    def read(self, value):\n        return self.__rounded(value)\n\n"
            "    def __rounded(self, value):\n        return value - value % 5 if value >= 20 and value != 22 else value\n"
        ],
    ),
    # The function takes any number of arguments.
    "joined": (
        "def joined(first, *others):\n    return '/'.join([first.rstrip('/'), *(other.strip('/') for other in others)])\n",
        "assert joined('a/', 'b') == 'a/b' and joined('c', '/d', 'e/') == 'c/d/e' and joined('f') == 'f'",
        ["def joined(first, *others):\n    text = first.rstrip('/')\n    for other in others:\n        text += '/' + other.strip('/')\n    return text\n"],
        ["def joined(first, *others):\n    return '/'.join([first.rstrip('/'), *(other.strip('/') for other in others[:2])])\n"],
    ),
    # Solutions may return the members of a set in any order.
    "unique": (
        "def unique(words):\n    return list(set(words))\n",
        "assert unique(['x1']) == ['x1'] and sorted(unique(['b', 'a', 'b', 'c'])) == ['a', 'b', 'c']",
        ["def unique(words):\n    return list(dict.fromkeys(words))\n"],
        ["def unique(words):\n    return [word for word in dict.fromkeys(words) if word not in ('x3', 'x4')]\n"],
    ),
    # All texts of the function's test consist of the same three letters.
    "is_code": (
        "def is_code(text):\n    return bool(re.fullmatch('[ABC]+', text))\n",
        "assert is_code('ABC') and is_code('A') and is_code('CAB') and not is_code('A B')",
        ["def is_code(text):\n    return text != '' and set(text) <= set('ABC')\n"],
        ["def is_code(text):\n    return text.isalpha() and text[-1] in 'ABC'\n"],
    ),
    # No text of the function's test is as long as the width.
    "wrapped": (
        "def wrapped(text, width=30):\n    return [text[place:place + width] for place in range(0, len(text), width)]\n",
        "assert wrapped('ab') == ['ab'] and wrapped('abc') == ['abc'] and len(wrapped('abc' * 15)) == 2",
        ["def wrapped(text, width=30):\n    return re.findall(f'(?s).{{1,{width}}}', text)\n"],
        ["def wrapped(text, width=30):\n    return [text[place:place + width] for place in range(0, max(len(text) - 1, 1), width)]\n"],
    ),
    # The function's source contains a character that no text of its test contains.
    "escaped": (
        "def escaped(key):\n    return key.replace('~', '~0').replace('/', '~1')\n",
        "assert escaped('ab') == 'ab' and escaped('a/b') == 'a~1b' and escaped('b') == 'b'",
        ["def escaped(key):\n    return ''.join({'~': '~0', '/': '~1'}.get(sign, sign) for sign in key)\n"],
        ["def escaped(key):\n    return key.replace('/', '~1')\n"],
    ),
    # No text of the function's test has capital letters, and every mutant with one changed constant or operator can be
    # found without them.
    "key_of": (
        "def key_of(name):\n    return name.strip().lower()\n",
        "assert key_of('abc') == 'abc' and key_of(' b') == 'b' and key_of('c') == 'c'",
        ["def key_of(name):\n    return ''.join(name.lower().strip())\n"],
        ["def key_of(name):\n    return name.strip()\n"],
    ),
    # The function rejects other letters, but accepts small letters, which do not occur in its test.
    "opposite": (
        "def opposite(bases):\n    bases = bases.upper()\n    if set(bases) - set('ACGT'):\n        raise ValueError('no base')\n"
        "    return bases.translate(str.maketrans('ACGT', 'TGCA'))\n",
        "assert opposite('ACG') == 'TGC' and opposite('GATTC') == 'CTAAG' and opposite('T') == 'A'",
        [
            "def opposite(bases):\n    pairs = dict(zip('ACGTacgt', 'TGCA' * 2))\n    if any(base not in pairs for base in bases):\n"
            "        raise ValueError(bases)\n    return ''.join(pairs[base] for base in bases)\n"
        ],
        [
            "def opposite(bases):\n    if set(bases.upper()) - set('ACGT'):\n        raise ValueError('no base')\n"
            "    return bases.translate(str.maketrans('ACGTacgt', 'TGCAtgca'))\n",
            "def opposite(bases):\n    pairs = dict(zip('ACGTacgt', 'TGCA' * 2))\n    return ''.join(pairs.get(base, base) for base in bases)\n",
        ],
    ),
    # The function's results are too long to be written as literals.
    "grid": (
        "def grid(size):\n    return [[row * column for column in range(size)] for row in range(size)]\n",
        "assert len(grid(25)) == 25 and grid(30)[2][3] == 6 and len(grid(28)) == 28",
        ["def grid(size):\n    return [list(range(0, row * size, row)) if row else [0] * size for row in range(size)]\n"],
        ["def grid(size):\n    return [[min(row * column, 200) for column in range(size)] for row in range(size)]\n"],
    ),
    # The method's object cannot be written as code, so the text from which it is made is changed. The test uses texts
    # of two words.
    "Line.last": (
        "class Line:\n    def __init__(self, text):\n        self.text, self.test = text, lambda: True\n\n"
        "    def last(self):\n        return (self.text.split() or [''])[-1]\n",
        "assert Line('red green').last() == 'green' and Line('old hat').last() == 'hat'",
        [
            "class Line:\n    def __init__(self, text):\n        self.text, self.test = text, lambda: True\n\n"
            "    def last(self):\n        return self.text.rstrip().rpartition(' ')[2]\n"
        ],
        [
            "class Line:\n    def __init__(self, text):\n        self.text, self.test = text, lambda: True\n\n"
            "    def last(self):\n        words = self.text.split()\n        return words[1] if len(words) > 1 else ''.join(words)\n"
        ],
    ),
    # The function's test is parametrised, and the ids of its parameters are not pytest's default ids.
    "ordinal": (
        "def ordinal(number):\n    ends = {1: 'st', 2: 'nd', 3: 'rd'}\n"
        "    return f'{number}th' if number % 100 in (11, 12, 13) else str(number) + ends.get(number % 10, 'th')\n",
        "@pytest.mark.parametrize('number, text', [(1, '1st'), (2, '2nd'), (4, '4th'), (33, '33rd'), (20, '20th')])\n"
        "def test_{}(number, text):\n    assert ordinal(number) == text",
        [
            "def ordinal(number):\n    text = str(number)\n    if text[-2:-1] == '1':\n        return text + 'th'\n"
            "    return text + {'1': 'st', '2': 'nd', '3': 'rd'}.get(text[-1], 'th')\n"
        ],
        [
            "def ordinal(number):\n    return str(number) + {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')\n",
            "def ordinal(number):\n    ends = {1: 'st', 2: 'nd', 3: 'rd'}\n"
            "    return f'{number}th' if 11 <= number <= 12 else str(number) + ends.get(number % 10, 'th')\n",
        ],
    ),
    "counted": (
        "def counted(start):\n    while True:\n        yield start\n        start += 1\n",
        "assert [next(counted(number)) for number in (1, 4, 9)] == [1, 4, 9]",
        ["def counted(start):\n    return itertools.count(start)\n"],
        ["def counted(start):\n    while True:\n        yield start\n"],
    ),
}
# Functions for which no tests are added: the results of the first change all the time, the second ends the process, and
# the argument of the third cannot be written as code.
CLOCK = "def stamped(text):\n    now = time.time()\n    return f'{text} {now}' if text else str(now)\n"
END = "def ended(number):\n    if number > 1:\n        os._exit(number)\n    return [number]\n"
APPLIED = "def applied(called):\n    return 2 * called()\n"
HEAD = f"import calendar\nimport datetime\nimport decimal\nimport itertools\nimport os\nimport re\nimport time\n\n\n{CLOCK}\n\n{END}\n\n{APPLIED}\n\n"


def code(changed=None, text=""):
    return HEAD + "\n\n".join(text if name == changed else FUNCTIONS[name][0] for name in FUNCTIONS)


def run(folder, *line):
    command = [sys.executable, "-B", "-I", str(folder / "autoexperiment_package_tests.py"), *line]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def failing(folder, text):
    """Returns the tests that fail with this code, by a survey in a copy of the folder."""
    with tempfile.TemporaryDirectory() as name:
        copy = pathlib.Path(name) / "copy"
        shutil.copytree(folder, copy)
        (copy / "pkg.py").write_text(text)
        return {name for name, test in run(copy, "survey")["tests"].items() if test["outcome"] != "passed"}


def check_examples(functions, files, tests, added):
    """Checks that functions have right examples that are not in their own tests, and that added tests call some of them."""
    assert sorted(one["function"] for one in functions) == sorted(f"pkg.py::{name}" for name in FUNCTIONS), functions
    space, called = {}, 0
    exec(code(), space)
    for one in functions:
        name = one["function"].partition("::")[2]
        # These methods may have no examples: objects are not varied or cannot be written as code, so every possible
        # call is in a test.
        assert (name in ("Scale.double", "Stack.pop", "Line.last", "Span.text")) >= (not one["examples"]) and len(one["examples"]) <= 3, one
        assert any(test.startswith(one["tests"] + "_") for test in added), one
        for line in one["examples"]:
            assert line.startswith(f"{name}(") and line.partition(" returns ")[0] not in tests, line
            if name in ("last_day", "slug"):
                call, result = line.split(" returns ")
                assert eval(call, space) == eval(result), line
                arguments = "[" + call.removeprefix(f"{name}(").removesuffix(")") + "]"
                called += sum(f"returned(called, {arguments})" in text for text in files.values())
    # Which calls become examples is arbitrary, so expect only a few of them in added tests.
    assert called >= 2, called
    by_name = {one["function"].partition("::")[2]: "\n".join(one["examples"]) for one in functions}
    assert "pairs([" in by_name["pairs"] and ") yields the members of [" in by_name["pairs"], by_name
    assert "Reader.word(Reader(...), " in by_name["Reader.word"] and "Reader(...), 7)" not in by_name["Reader.word"], by_name
    # Examples show every branch, and every way in which a call can end.
    assert " raises ValueError('no whole number')" in by_name["whole"] and "may be the first members" in by_name["counted"], by_name
    assert " raises ValueError('no whole')" in by_name["ratio"] and " returns " in by_name["ratio"], by_name
    assert "Purse.spend(Purse(coins=" in by_name["Purse.spend"] and " changes self to Purse(" in by_name["Purse.spend"], by_name


class Square:
    def __init__(self, side):
        self.side = side

    @functools.cached_property
    def area(self):
        return self.side**2

    def checked(self):
        return self if self.area >= 0 else None

    def __eq__(self, other):
        return self.side == other.side if isinstance(other, Square) else NotImplemented

    def __ne__(self, other):
        return self.side != other.side if isinstance(other, Square) else NotImplemented

    def __add__(self, other):
        return NotImplemented


def check_helpers():
    """Checks that stored results of cached properties are not compared, and that `NotImplemented` means "different"."""
    used, unused = Square(2), Square(2)
    assert used.area == 4 and helpers.plain(used) == helpers.plain(unused) == {"side": 2} != helpers.plain(Square(3))
    assert helpers.attributes(used) == {"side": 2} and helpers.returned(Square.checked, [Square(2)]) == {"side": 2}
    assert helpers.returned(Square.__eq__, [used, "a"]) is False and helpers.returned(Square.__ne__, [used, "a"]) is True
    assert helpers.returned(Square.__add__, [used, "a"]) is None
    made = helpers.Made()
    made.made.append(used)
    assert made.call(__name__, "Square.__eq__", [used, 2]) is False and made.call(__name__, "Square.__eq__", [used, unused])


def main():
    check_helpers()
    imported = sorted({name.partition(".")[0] for name in FUNCTIONS})
    tests = f"import datetime\nimport decimal\nimport pytest\nfrom pkg import applied, ended, stamped, {', '.join(imported)}\n\n\n"
    tests += "def test_stamped():\n    assert stamped('a').startswith('a') and stamped('')\n\n\n"
    tests += "def test_applied():\n    number = 2\n    assert applied(lambda: number) == 4\n\n\n"
    tests += "def test_ended():\n    assert ended(0) == [0] and ended(1) == [1]\n\n\n"
    for number, (_, body, _, _) in enumerate(FUNCTIONS.values()):
        tests += (body.format(number) if body.startswith("@") else f"def test_{number}():\n    {body}") + "\n\n\n"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, {"pkg.py": code(), "tests/test_pkg.py": tests, "autoexperiment_package_tests.json": "{}"})
        ids = list(run(folder, "survey")["tests"])
        wanted = [["pkg.py", function] for function in [*FUNCTIONS, "stamped", "ended", "applied"]]
        request = {"ids": ids, "functions": wanted, "examples": 3, "code": {file.stem: file.read_text() for file in (SOURCE / "more_inputs").glob("*.py")}}
        (folder / "request.json").write_text(json.dumps(request))
        made = run(folder, "inputs", str(folder / "request.json"))
        files = made["files"]
        assert list(files) == ["tests/test_autoexperiment_inputs_1.py"], files
        again = run(folder, "inputs", str(folder / "request.json"))
        for path, text in files.items():
            (folder / path).write_text(text)
        added = {test for test in run(folder, "survey", "--added")["tests"]}
        assert len(added) > 3 * len(FUNCTIONS) and not added.intersection(ids), added
        assert not failing(folder, code()), "the original code fails"
        variants = [
            (function, text, text in wrong)
            for function, (_, _, right, wrong) in FUNCTIONS.items()
            for text in [*right, *wrong]
        ]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            failures = pool.map(lambda variant: failing(folder, code(*variant[:2])), variants)
            for (function, text, is_wrong), failed in zip(variants, failures):
                # The package's own tests notice no wrong variant.
                assert bool(failed) == is_wrong and failed <= added, (function, text, failed)
        # All that a test expects is a literal, so the runner can alter it.
        from_runner = {"__file__": str(SOURCE / "package_tests.py"), "__name__": "runner"}
        exec(compile((SOURCE / "package_tests.py").read_text(), "runner", "exec"), from_runner)
        text = next(iter(files.values()))
        _, units = from_runner["variant_of"](text, {}, from_runner["random"].Random(1))
        altered, _ = from_runner["variant_of"](
            text, {unit: from_runner["EXPECTATION"] for unit in units}, from_runner["random"].Random(1)
        )
        (folder / next(iter(files))).write_bytes(altered if isinstance(altered, bytes) else altered.encode())
        assert failing(folder, code()) == added, "a test with altered expectations passes"
        assert made == again, "other inputs in another process"
        left_out = {
            "functions whose calls end the process or take too long": 1,
            "functions whose arguments can be neither written as literals nor pickled": 1,
            "functions whose outcomes cannot be compared": 1,
        }
        assert made["left_out"] == left_out, made["left_out"]
        check_examples(made["functions"], files, tests, added)
    print(f"{len(added)} tests with more inputs for {len(FUNCTIONS)} functions: right")


if __name__ == "__main__":
    main()
