"""The golden master: fits, explanations and commands give what they gave."""

import pytest
from golden import GROUPS, compared


@pytest.mark.parametrize("group", GROUPS)
def test_what_a_user_gets_is_what_it_was(group):
    assert compared(group) == []
