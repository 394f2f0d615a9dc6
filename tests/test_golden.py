"""The golden master: fits of every regime are what they were, up to rounding."""

import pytest
from golden import CASES, GROUPS, compared, deviations


@pytest.mark.parametrize("name", CASES)
def test_a_fit_is_what_it_was(name):
    found, expected, far = deviations(name)
    assert found["exact"] == expected["exact"]
    assert list(found["arrays"]) == list(expected["arrays"])
    assert {key: off for key, off in far.items() if off > CASES[name].tolerance(key)} == {}


@pytest.mark.parametrize("group", GROUPS)
def test_what_a_user_of_texts_gets_is_what_it_was(group):
    assert compared(group) == []
