"""What a new user found on a city of taxis, and which tests hold that it stays repaired.

A table to find them by; each name must be that of a test.
"""

from __future__ import annotations

from importlib import import_module
from math import log
from pathlib import Path

import pytest

from dphmm.evaluate.protocol import protocol
from dphmm.evaluate.results import read_result
from tests.findings import check_tests

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"

FINDINGS = {
    "1. a private model is worse than none, without a word": (
        "test_private.test_fifty_people_of_a_made_up_city_beat_a_walk_that_knows_no_data",
        "test_private.test_people_of_geolife_are_followed_by_a_model_that_is_private_for_others",
        "test_private.test_people_who_go_farther_than_memory_reaches_have_a_chain_that_reaches_them",
        "test_private.test_noise_on_the_few_who_leave_does_not_decide_how_long_people_stay",
        "test_judging.test_learn_judges_and_refuses_what_is_worse_than_none",
    ),
    "2. errors are to the cell, and nobody says what lies outside the map": (
        "test_report.test_errors_are_to_the_true_coordinates_and_the_map_has_its_part",
        "test_cli_import.test_what_lies_outside_is_counted_dropped_or_refused",
        "test_maps.test_tracks_that_do_not_fit_the_map_are_refused",
    ),
    "3. learn is mute, also with a wrong time step": (
        "test_cli_import.test_learning_says_how_much_was_counted_and_doubts_a_wrong_step",
        "test_judging.test_check_doubts_a_model_by_which_nobody_moves",
    ),
    "4. files without a header, Unix times, other people's trips, tables": (
        "test_newcomers.test_a_ride_is_its_start_and_its_end",
        "test_newcomers.test_rides_go_all_the_way",
        "test_newcomers.test_a_collar_of_windows_with_commas_and_days_first_is_read",
        "test_newcomers.test_sixty_days_that_the_limit_refuses_are_told_of_before_anybody_waits",
        "test_strangers.test_several_tracks_at_once_are_not_one_person",
        "test_strangers.test_buses_go_from_a_feed_to_a_report",
        "test_written.test_degrees_are_read_as_people_write_them",
        "test_written.test_letters_may_have_columns_of_their_own",
        "test_written.test_metres_of_a_map_are_no_degrees",
        "test_written.test_people_who_take_turns_are_not_one_person",
        "test_written.test_notes_are_there_for_the_quiet_and_for_programs",
        "test_reading.test_every_kind_of_file_gives_the_same_tracks",
        "test_reading.test_every_kind_of_table_gives_the_same_tracks",
        "test_reading.test_steps_are_texts_for_dates_and_numbers_for_numbers",
        "test_reading.test_what_cannot_be_seen_from_values_is_asked_for",
        "test_reading.test_columns_that_nobody_uses_are_named_so_that_a_person_is_not_lost",
        "test_reading.test_a_header_says_what_it_lacks",
        "test_cli_import.test_five_commands_lead_from_a_folder_to_a_report",
        "test_five_commands.test_twenty_thousand_fixes_go_from_a_folder_to_a_report",
    ),
    "5. an edited scenario is written over, has no limit, and sizes that cannot be": (
        "test_cli_import.test_files_that_somebody_changed_are_not_written_over",
        "test_cli_import.test_five_commands_lead_from_a_folder_to_a_report",
        "test_cli_import.test_tracks_that_cannot_be_used_are_one_line_and_nothing_is_written",
    ),
    "6. the report does not finish on gaps, and long work shows nothing": (
        "test_cost_windows.test_one_stretch_without_a_gap_covers_all_the_others",
        "test_five_commands.test_half_a_million_fixes_go_from_a_folder_to_a_report",
        "test_cli_program.test_progress_in_a_log_is_a_line_now_and_then",
        "test_judging.test_judging_shows_how_far_it_is",
    ),
    "7. a report accepts releases of another policy": (
        "test_law_parts.test_answers_under_another_law_of_the_same_name_are_refused",
        "test_law_parts.test_no_kind_of_table_goes_into_a_map_or_a_page_under_another_law",
        "test_law_parts.test_every_row_and_every_feature_carries_it",
    ),
    "8. files that hold the truth are readable by everybody": (
        "test_cli_program.test_private_files_are_closed_from_their_first_byte",
        "test_cli_program.test_a_report_with_the_truth_is_closed_to_others",
    ),
    "9. help prints its examples as one paragraph": (
        "test_cli_program.test_help_has_its_examples_on_lines_of_their_own",
    ),
    "10. numbers without units, too many digits, silent stops, full disks without a name": (
        "test_cli_program.test_lengths_are_printed_with_their_unit_and_few_digits",
        "test_cli_program.test_a_wanted_error_may_have_a_unit",
        "test_cli_program.test_lengths_of_a_scenario_may_have_units",
        "test_cli_program.test_a_scenario_from_python_has_a_unit_as_a_file_has",
        "test_cli_program.test_a_run_that_is_stopped_says_what_to_do",
        "test_cli_program.test_a_full_disk_names_the_file",
    ),
    "bad input: 25 kinds of broken trips, and more for every other command": (
        "test_cli_bad_input.test_a_bad_row_is_one_line_that_does_not_tell",
        "test_cli_bad_input.test_dates_that_do_not_fit_are_located",
        "test_cli_bad_input.test_what_makes_no_sense_is_one_line_and_nothing_is_lost",
        "test_cli_import.test_tracks_that_cannot_be_used_are_one_line_and_nothing_is_written",
        "test_judging.test_what_cannot_be_judged_is_one_line",
    ),
}

DONE = {
    "held-out people of GeoLife at 40% and 26%, at epsilon 0.3 at 42% and 28%": (
        "test_private.test_people_of_geolife_are_followed_by_a_model_that_is_private_for_others",
    ),
    "fifty people of the made-up city beat the uniform walk": (
        "test_private.test_fifty_people_of_a_made_up_city_beat_a_walk_that_knows_no_data",
    ),
    "learn says so where a private model is worse than none": (
        "test_judging.test_a_private_model_of_noise_is_said_to_be_worse_than_none",
        "test_judging.test_learn_judges_and_refuses_what_is_worse_than_none",
        "test_judging.test_what_is_private_goes_to_the_screen_and_not_into_the_model",
    ),
    "the sensitivity holds on neighbouring data, and Spark counts alike": (
        "test_private.test_one_person_changes_each_level_by_at_most_one_unit",
        "test_private.test_no_outcome_tells_neighbours_apart_by_more_than_epsilon",
        "test_private.test_the_source_says_what_was_spent_where_and_it_adds_up",
        "test_spark.test_counts_are_the_local_ones_to_the_last",
    ),
    "regions within 5 points, expected errors within a factor of 1.5": (
        "test_calibration.test_regions_hold_people_of_a_made_up_city",
        "test_calibration.test_regions_hold_real_people",
        "test_calibration.test_regions_hold_others_than_those_who_chose_the_confidence",
        "test_calibration.test_regions_of_counts_alone_hold_less_than_they_state",
    ),
    "half a million fixes in five commands, and the report's time and memory": (
        "test_five_commands.test_half_a_million_fixes_go_from_a_folder_to_a_report",
    ),
    "GeoJSON is valid; H3, networks and polygons go all the way": (
        "test_maps.test_the_geojson_of_a_map_is_valid_to_other_libraries",
        "test_cli_import.test_every_kind_of_states_goes_all_the_way",
        "test_law_parts.test_every_row_and_every_feature_carries_it",
        "test_report.test_everybody_can_be_picked_and_says_what_was_given_away",
    ),
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_every_finding_has_its_tests(finding: str) -> None:
    check_tests(FINDINGS[finding])


@pytest.mark.parametrize("line", DONE)
def test_everything_that_was_wanted_has_its_tests(line: str) -> None:
    check_tests(DONE[line])


def test_there_are_as_many_kinds_of_bad_input_as_were_wanted() -> None:
    bad = import_module("tests.test_cli_bad_input")
    assert len(bad.ROWS) + len(bad.DATES) >= 24, "and bytes that are no text"
    kinds = [arguments[0] for arguments, _ in bad.OTHERS.values()]
    for command in ("audit", "store", "serve", "reproduce"):
        assert kinds.count(command) >= 5
    assert len(import_module("tests.test_cli_import").BAD) >= 10
    assert len(import_module("tests.test_judging").BAD) >= 10


def test_measured_regions_and_errors_are_within_what_was_wanted() -> None:
    # What was measured last on GeoLife, Gowalla and the made-up city, whoever's chain it is.
    chosen, found = protocol()["calibration"], read_result(RESULTS / "calibration.json").values
    for name in chosen["steps"]:
        for chain in ("private", "places", "momentum"):
            for mass in ("50%", "90%"):
                miss = found[f"{name}.{chain}.miss.{mass}"].value
                assert abs(float(miss)) <= 100 * chosen["points"], (name, chain, mass)
            expected = float(found[f"{name}.{chain}.expected"].value)
            assert abs(log(expected)) <= log(chosen["factor"]), (name, chain)


def test_measured_estimates_of_private_chains_are_as_near_as_was_wanted() -> None:
    found = read_result(RESULTS / "private.geolife.json").values
    for epsilon, goals in protocol()["private"]["goals"].items():
        for kind, goal in zip(("filtered", "smoothed"), goals, strict=True):
            assert float(found[f"{epsilon}.share.{kind}"].value) <= goal, (epsilon, kind)


def test_the_five_commands_and_the_report_have_targets_in_the_benchmarks() -> None:
    text = (RESULTS.parent.parent / "benchmarks" / "bench_commands.py").read_text("utf-8")
    for target in ('"value <= 30" if words[0] == "report"', '"s", target="value <= 60"',
                   '"MB", target="value <= 1000"'):  # fmt: skip
        assert target in text
