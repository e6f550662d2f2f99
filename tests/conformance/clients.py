"""Reads the examples of the description with the client that was made from it."""

import json

from client import models

document = json.load(open("openapi.json"))
schemas = document["components"]["schemas"]

problems = [name for name in schemas if name.startswith("Problem") and "example" in schemas[name]]
for name in problems:
    problem = getattr(models, name).from_dict(schemas[name]["example"])
    assert problem.code.value == schemas[name]["example"]["code"], name
declined = models.Problem402.from_dict(schemas["Problem402"]["example"])
assert (declined.status, declined.txid is None) == ("RECUSADA", False)

media = document["paths"]["/api/events"]["get"]["responses"]["200"]["content"]["application/json"]
events = models.EventPage.from_dict(media["example"]).items
assert isinstance(events[0], models.ChargeEvent), events
print(len(problems), "problems and an event are read")
