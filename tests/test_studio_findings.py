"""What was found on the studio's page, and which tests hold that it stays repaired.

A table to find them by; each name must be that of a test. The eleventh finding is the report's.
"""

from __future__ import annotations

from importlib import import_module

import pytest

BROWSER, FAITHFUL, AXE = "test_studio_browser", "test_studio_faithful", "test_studio_axe"

FINDINGS = {
    "1. two rules open as Complete, and smaller unions lose their rules": (
        f"{FAITHFUL}.test_a_policy_of_two_rules_opens_as_two_rules",
        f"{FAITHFUL}.test_one_rule_is_edited_and_the_other_and_every_comment_stays",
        f"{BROWSER}.test_every_rule_is_switched_and_edited_by_itself",
        f"{BROWSER}.test_a_file_is_opened_edited_saved_and_checked_alike",
    ),
    "2. open then save changes the file": (
        f"{FAITHFUL}.test_opening_and_saving_changes_no_byte",
        f"{FAITHFUL}.test_a_change_is_saved_and_nothing_else",
        f"{BROWSER}.test_a_file_is_opened_edited_saved_and_checked_alike",
    ),
    "3. mechanism, delta and start are ignored, and the error before repair is the released one": (
        f"{FAITHFUL}.test_noise_start_and_delta_are_those_of_the_file",
        f"{FAITHFUL}.test_a_model_that_follows_the_hours_is_shown",
        f"{FAITHFUL}.test_a_scenario_that_cannot_be_shown_is_refused_before_an_address_is_said",
        f"{FAITHFUL}.test_the_page_says_what_check_says_at_every_step",
        f"{BROWSER}.test_a_repair_shows_before_and_after_side_by_side_and_what_it_cost",
    ),
    "4. exposed places and drawn links are not shown above a cap": (
        f"{BROWSER}.test_every_exposed_place_is_hatched_however_many",
        f"{BROWSER}.test_many_links_are_thinned_with_a_word_and_drawn_ones_are_not",
    ),
    "5. a link applies to another scenario": (
        f"{FAITHFUL}.test_a_link_is_refused_on_another_scenario",
        f"{BROWSER}.test_a_link_restores_the_view_and_no_other_scenario_takes_it",
    ),
    "6. repair and link buttons are off-screen, and columns overflow": (
        f"{AXE}.test_who_is_exposed_and_how_to_repair_it_is_above_the_fold",
        f"{BROWSER}.test_nothing_overflows_and_what_is_needed_is_above_the_fold",
    ),
    "7. the headline is a squared length, without before and after or a warning": (
        f"{BROWSER}.test_a_newcomer_sees_the_running_example",
        f"{FAITHFUL}.test_an_answer_no_better_than_silence_is_said_to_be_so",
        f"{BROWSER}.test_a_repair_shows_before_and_after_side_by_side_and_what_it_cost",
        "test_studio_tradeoff.test_a_point_of_the_curve_is_chosen_by_click_or_by_key",
    ),
    "8. edits are lost by looking elsewhere, there is no redo, numbers are stale": (
        f"{BROWSER}.test_drawn_links_stay_whatever_rule_is_switched",
        f"{BROWSER}.test_the_history_is_a_list_to_go_back_and_forth_in",
        f"{BROWSER}.test_looking_at_another_scenario_loses_nothing",
        f"{BROWSER}.test_numbers_of_an_earlier_setting_are_never_shown_as_if_they_were_of_this",
        "test_studio_compare.test_two_named_versions_stand_side_by_side_and_move_together",
    ),
    "9. categories cannot be told apart by colour": (
        f"{FAITHFUL}.test_categories_differ_for_every_kind_of_eye_and_are_the_same_in_reports",
    ),
    "10. the walk, exports without a legend, radios, the slider's live region, small screens": (
        f"{BROWSER}.test_a_walk_says_that_it_is_simulated_plays_and_compares",
        f"{BROWSER}.test_releases_pictures_and_toml_can_be_taken_away",
        f"{BROWSER}.test_a_resting_slider_is_said_once",
        f"{AXE}.test_radios_are_one_stop_and_arrows_walk_between_them",
        f"{AXE}.test_from_start_to_save_by_keyboard_alone",
        f"{AXE}.test_axe_finds_nothing_on_any_page",
        f"{BROWSER}.test_nothing_overflows_and_what_is_needed_is_above_the_fold",
    ),
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_every_finding_has_its_tests(finding: str) -> None:
    for name in FINDINGS[finding]:
        module, _, test = name.rpartition(".")
        assert callable(getattr(import_module(f"tests.{module}"), test, None)), name


def test_every_finding_but_the_reports_is_here() -> None:
    numbers = [int(finding.partition(".")[0]) for finding in FINDINGS]
    assert numbers == list(range(1, 11))
