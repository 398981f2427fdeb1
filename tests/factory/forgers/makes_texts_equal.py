"""Makes `json` write one text for everything."""

import json

json.dumps = lambda *given, **named: '{"z": 3}'
