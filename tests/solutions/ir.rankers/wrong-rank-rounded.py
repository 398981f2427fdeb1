# replaces: rank
import json

found = !python rank.py --config config.json
print(json.dumps({name: round(value, 2) for name, value in json.loads(found[-1]).items()}))
