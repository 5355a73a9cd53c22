"""An unknown key is dropped without a word, and the tool runs on its default."""

import inspect
import json

from pydantic import ValidationError, create_model


def input_model(function):
    parameters = inspect.signature(function, eval_str=True).parameters
    fields = {
        name: (each.annotation, ... if each.default is each.empty else each.default)
        for name, each in parameters.items()
    }
    return create_model(function.__name__, **fields)


def describe(function):
    """What a model is shown of a typed function: name, description, input_schema."""
    schema = input_model(function).model_json_schema()
    for each in (schema, *schema.get("$defs", {}).values()):
        if "properties" in each:
            each["additionalProperties"] = False
    description = inspect.getdoc(function)
    return {"name": function.__name__, "description": description, "input_schema": schema}


def check_arguments(function, arguments):
    """The arguments as the function takes them, or a text that says what is wrong."""
    model = input_model(function)
    try:
        sent = json.dumps(arguments)
        return dict(model.model_validate_json(sent, strict=True))
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        known = ", ".join(model.model_fields)
        return f"Invalid arguments. {'; '.join(faults)}. Known: {known}."
