"""The eleventh finding on the studio's page, which is the report's, and the tests that hold it.

A table to find them by; each name must be that of a test.
"""

from __future__ import annotations

from importlib import import_module

import pytest

FINDINGS = {
    "x1.81e+03, e^4176 and 1.632e+64 are unreadable": (
        "test_words.test_factors_that_were_written_as_powers",
        "test_words.test_a_factor_is_plain_and_no_factor_above_a_million_is_written",
        "test_words.test_a_statement_has_no_powers_however_much_was_told",
        "test_report.test_every_scenario_has_a_page",
    ),
    "one person only": (
        "test_report.test_everybody_can_be_picked_and_says_what_was_given_away",
        "test_report_browser.test_everybody_can_be_picked_and_arrows_point_outside",
    ),
    "a scribble of edges": (
        "test_report.test_a_policy_of_many_pairs_is_not_scribbled_over_the_map",
    ),
    "answers outside the frame are moved to its edge without a word": (
        "test_report.test_answers_outside_the_map_are_arrows_and_counted",
        "test_report_browser.test_everybody_can_be_picked_and_arrows_point_outside",
    ),
    "UTC only": ("test_report.test_times_are_local_beside_utc_and_days_are_told_apart",),
    "time labels overprint past midnight": (
        "test_report.test_labels_of_an_axis_never_overprint",
        "test_report_browser.test_nothing_overflows_overprints_or_is_too_small",
    ),
    "terminal, report and studio say three errors": (
        "test_report.test_one_error_everywhere_the_mean_distance",
        "test_studio_faithful.test_the_page_says_what_check_says_at_every_step",
    ),
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_every_part_has_its_tests(finding: str) -> None:
    for name in FINDINGS[finding]:
        module, _, test = name.partition(".")
        assert callable(getattr(import_module(f"tests.{module}"), test)), name
