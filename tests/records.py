"""Records held against their JSON schema."""

from functools import cache

from jsonschema.validators import validator_for

from smalldb.releasing.record import record_schema


@cache
def _validator():
    schema = record_schema()
    validator_for(schema).check_schema(schema)
    return validator_for(schema)(schema)


def check_record(record):
    """Raise a ValidationError if a record is not as its schema says."""
    _validator().validate(record)
