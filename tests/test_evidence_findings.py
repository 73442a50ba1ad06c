"""What a reviewer found in the evaluation, and which tests hold that it stays repaired.

A table to find them by; each name must be that of a test.
"""

from __future__ import annotations

from importlib import import_module

import pytest

FINDINGS = {
    "1. figures are copies that nothing checks, and older results are used silently": (
        "test_inclusion.test_every_page_shows_what_the_files_hold",
        "test_inclusion.test_a_changed_number_on_a_page_is_found_and_repaired",
        "test_inclusion.test_a_changed_number_in_a_file_is_found",
        "test_inclusion.test_the_list_of_numbers_without_a_file_only_shrinks",
        "test_inclusion.test_a_new_number_without_a_file_is_found",
        "test_results.test_a_changed_sampler_gives_another_fingerprint",
        "test_results.test_the_evaluation_leads_to_the_sampler_and_to_every_kernel",
        "test_results.test_a_kept_part_is_used_only_with_the_same_code_data_and_settings",
    ),
    "2. the folds leak: twins": (
        "test_protocol.test_twins_are_found_and_locked_together",
        "test_protocol.test_no_run_has_a_locked_person_or_a_twin_in_its_training",
        "test_twins.test_geolife_has_twins",
    ),
    "3. the spread is between people and between draws of noise": (
        "test_protocol.test_the_protocol_asks_for_enough_seeds",
        "test_section8.test_draws_of_the_location_set_differ_by_seed_and_repeat",
        "test_readings.test_a_reading_has_every_seed_of_so_many_runs_a_person",
    ),
    "4. claims that did not hold are the clock": (
        "test_section8.test_the_clock_s_study_has_a_row_for_every_clock",
        "test_section8.test_the_protocol_s_clocks_reach_from_seconds_to_minutes",
        "test_protocol.test_dates_of_any_unit_are_resampled_alike",
    ),
    "5. verdicts without uncertainty, ties called falls, stand-ins credited": (
        "test_section8.test_a_verdict_is_sure_only_where_the_whole_interval_is",
        "test_section8.test_every_claim_gets_a_verdict_with_its_rule",
        "test_section8.test_a_tie_is_a_tie",
        "test_section8.test_a_claim_that_is_wrong_is_not_called_held",
        "test_section8.test_a_truth_outside_the_possible_set_has_no_protection",
        "test_section8.test_people_count_equally_or_by_their_steps",
    ),
    "6. the attack is shown as utility alone, and the theorems' values are missing": (
        "test_readings.test_use_and_attack_come_from_the_same_estimates",
        "test_readings.test_bounds_are_those_of_theorem_6_3_over_all_states",
        "test_readings.test_bounds_of_a_run_are_those_of_an_answer_times_its_steps",
    ),
    "7. the worked examples exist only in tests": (
        "test_worked.test_every_number_that_the_paper_prints_holds_but_three_that_say_why",
        "test_results.test_evidence_writes_a_file_for_every_study_asked_for",
    ),
    "a protocol fixed before looking, and locked people": (
        "test_protocol.test_about_a_fifth_is_locked_whoever_else_there_is",
        "test_protocol.test_locked_people_are_refused",
        "test_protocol.test_the_end_evaluates_locked_people_on_chains_of_the_others",
    ),
    "exact expectations where they exist": (
        "test_section8.test_a_course_without_draws_is_what_every_stream_of_releases_goes_through",
        "test_section8.test_the_error_of_an_answer_about_a_stand_in_grows_with_its_distance",
    ),
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_every_finding_has_its_tests(finding: str) -> None:
    for name in FINDINGS[finding]:
        module, _, test = name.partition(".")
        assert callable(getattr(import_module(f"tests.{module}"), test, None)), name
