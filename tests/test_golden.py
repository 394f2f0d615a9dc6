"""The golden master: fits of every regime are what they were, up to rounding."""

import json

import golden_outputs
import pytest
from golden import CASES, PATH, deviation, outcome

EXPECTED = json.loads(PATH.read_text())


def test_every_case_is_recorded():
    assert list(EXPECTED) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_fit_is_what_it_was(name):
    found, expected = outcome(CASES[name]), EXPECTED[name]
    assert found["exact"] == expected["exact"]
    assert found["arrays"].keys() == expected["arrays"].keys()
    too_far = {
        quantity: found_deviation
        for quantity, value in found["arrays"].items()
        if (found_deviation := deviation(value, expected["arrays"][quantity]))
        > CASES[name].tolerance(quantity)
    }
    assert not too_far


@pytest.mark.parametrize("group", golden_outputs.GROUPS)
def test_what_a_user_of_texts_gets_is_what_it_was(group):
    assert golden_outputs.compared(group) == []
