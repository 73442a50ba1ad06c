"""What was found on the studio's page, what was to be built, when it is done: tests that hold it.

Tables to find them by; each name must be that of a test. The eleventh finding is the report's,
and what was measured stands in `benchmarks/bench_studio.py`.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BROWSER, FAITHFUL, AXE = "test_studio_browser", "test_studio_faithful", "test_studio_axe"
LATE, SEEN = "test_studio_late", "test_studio_seen"
LEAVING, DISK = "test_studio_leaving", "test_studio_disk"
WATCHED, OFFICER = "test_studio_watched", "test_studio_officer"

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
        f"{SEEN}.test_what_is_seen_is_what_check_prints",
    ),
    "4. exposed places and drawn links are not shown above a cap": (
        f"{BROWSER}.test_every_exposed_place_is_hatched_however_many",
        f"{BROWSER}.test_many_links_are_thinned_with_a_word_and_drawn_ones_are_not",
    ),
    "5. a link applies to another scenario": (
        f"{FAITHFUL}.test_a_link_is_refused_on_another_scenario",
        f"{BROWSER}.test_a_link_restores_the_view_and_no_other_scenario_takes_it",
        f"{LEAVING}.test_what_was_forgotten_and_is_another_now_is_not_computed_with",
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
        f"{BROWSER}.test_an_answer_does_not_take_away_what_somebody_is_writing",
        f"{LATE}.test_a_link_that_is_answered_late_takes_no_edit_back",
        f"{LATE}.test_without_an_answer_edits_stay_and_are_asked_about_again",
        f"{LATE}.test_what_is_edited_while_it_is_saved_is_an_edit_of_the_saved_file",
        f"{LATE}.test_a_file_opened_in_one_window_leaves_the_other_alone",
        f"{LATE}.test_steps_of_the_setting_before_are_not_shown_as_this_ones",
        f"{LEAVING}.test_an_edit_just_before_a_reload_is_there_after_it",
        f"{LEAVING}.test_a_film_of_another_version_b_is_not_shown_as_this_ones",
        f"{LEAVING}.test_the_map_of_another_version_is_not_shown_as_this_ones",
        f"{LEAVING}.test_what_is_taken_away_has_the_numbers_of_its_scenario",
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


COMPARE, LIVE, MAPS = "test_studio_compare", "test_studio_live", "test_studio_maps"
MODULES, PROGRESS, PROMISES = "test_studio_modules", "test_studio_progress", "test_studio_promises"
SERVER, SIZES, START = "test_studio_server", "test_studio_sizes", "test_studio_start"
TRADEOFF, JOB, BASE = "test_studio_tradeoff", "test_studio_job", "test_basemap"
REPORT, REPORT_BROWSER = "test_report", "test_report_browser"

BUILT = {
    "faithful: a policy is a list of layers, each shown, switched and edited, never expanded": (
        f"{FAITHFUL}.test_a_policy_of_two_rules_opens_as_two_rules",
        f"{BROWSER}.test_every_rule_is_switched_and_edited_by_itself",
        f"{FAITHFUL}.test_own_edges_survive_every_change_of_a_rule",
    ),
    "faithful: it computes what check, design and release compute, for every setting": (
        f"{FAITHFUL}.test_the_page_says_what_check_says_at_every_step",
        f"{FAITHFUL}.test_noise_start_and_delta_are_those_of_the_file",
        f"{FAITHFUL}.test_a_model_that_follows_the_hours_is_shown",
        f"{FAITHFUL}.test_a_report_has_the_errors_of_the_page_at_every_step",
        f"{TRADEOFF}.test_every_point_is_what_check_says_of_the_file_with_its_changes",
        f"{TRADEOFF}.test_an_interval_is_what_design_finds_for_the_same_budget",
        f"{PROMISES}.test_a_film_is_what_a_stream_of_the_scenario_releases",
    ),
    "faithful: before repair and as released stand side by side": (
        f"{SERVER}.test_before_repair_and_as_released_stand_side_by_side",
        f"{BROWSER}.test_a_repair_shows_before_and_after_side_by_side_and_what_it_cost",
    ),
    "faithful: save after the difference, save as, comments and order survive": (
        f"{FAITHFUL}.test_the_difference_is_shown_before_it_is_saved",
        f"{FAITHFUL}.test_saving_as_makes_a_new_file_and_never_replaces_one",
        f"{FAITHFUL}.test_opening_and_saving_changes_no_byte",
        f"{FAITHFUL}.test_a_change_is_saved_and_nothing_else",
        f"{DISK}.test_a_file_that_changed_since_can_be_saved_under_another_name",
        f"{DISK}.test_links_that_a_colleague_wrote_meanwhile_are_not_written_over",
    ),
    "faithful: a link carries the fingerprint and is refused on another scenario": (
        f"{FAITHFUL}.test_a_link_is_refused_on_another_scenario",
        f"{BROWSER}.test_a_link_restores_the_view_and_no_other_scenario_takes_it",
    ),
    "a result that people understand: the report's words, one error everywhere": (
        f"{FAITHFUL}.test_the_headline_carries_its_condition",
        f"{BROWSER}.test_a_newcomer_sees_the_running_example",
        f"{REPORT}.test_one_error_everywhere_the_mean_distance",
    ),
    "a result: change since the last edit, a warning when an answer is no better than silence": (
        f"{OFFICER}.test_a_small_change_does_not_show_one_length_twice",
        f"{BROWSER}.test_a_repair_shows_before_and_after_side_by_side_and_what_it_cost",
        f"{FAITHFUL}.test_an_answer_no_better_than_silence_is_said_to_be_so",
    ),
    "a result: the trade-off curve with the present point, clickable": (
        f"{TRADEOFF}.test_a_point_of_the_curve_is_chosen_by_click_or_by_key",
        f"{TRADEOFF}.test_the_present_value_is_on_its_curve",
        f"{MAPS}.test_errors_beyond_the_picture_are_arrows_and_no_points_of_the_curve",
    ),
    "a result: a daily budget and its schedule": (
        f"{BROWSER}.test_a_budget_and_its_schedule_are_set_and_fit_each_other",
        f"{TRADEOFF}.test_a_budget_has_curves_of_its_own_and_a_schedule_by_one_press",
        f"{TRADEOFF}.test_a_chosen_budget_is_spent_evenly",
        f"{OFFICER}.test_check_and_the_page_say_that_a_budget_does_not_last",
        f"{OFFICER}.test_the_result_says_that_a_budget_does_not_last_and_what_estimates_count",
    ),
    "a map: every exposed place hatched, the user's edges drawn, others thinned visibly": (
        f"{BROWSER}.test_every_exposed_place_is_hatched_however_many",
        f"{BROWSER}.test_many_links_are_thinned_with_a_word_and_drawn_ones_are_not",
    ),
    "a map: a selected place shows whom it looks like, tooltips at the cursor": (
        f"{PROMISES}.test_a_place_at_the_pointer_says_whom_it_looks_like",
        f"{REPORT_BROWSER}.test_a_tooltip_names_the_place_at_the_cursor",
    ),
    "a map: an offline base map under the cells in studio and report": (
        f"{BASE}.test_report_and_studio_draw_the_base_in_the_same_colours_and_places",
        f"{BASE}.test_a_page_has_the_base_once_under_every_map",
    ),
    "a map: cells, points, hexagons and polygons": (
        f"{MAPS}.test_every_hexagon_is_drawn_and_a_name_that_does_not_fit_is_left_out",
        f"{MAPS}.test_polygons_are_drawn_named_and_hatched_as_they_are",
        f"{MAPS}.test_a_hole_stays_free_and_what_two_polygons_share_is_filled",
        f"{MAPS}.test_squares_of_a_grid_stay_squares",
    ),
    "a map: legend complete, one palette, labels that do not collide": (
        f"{PROMISES}.test_categories_beyond_the_palette_are_others_and_names_do_not_collide",
        f"{FAITHFUL}.test_categories_differ_for_every_kind_of_eye_and_are_the_same_in_reports",
        f"{REPORT}.test_labels_of_states_do_not_collide",
    ),
    "a film: play and pause, trail, belief, lagged and hindsight, arrows, clock, several people": (
        f"{BROWSER}.test_a_walk_says_that_it_is_simulated_plays_and_compares",
        f"{BROWSER}.test_several_people_are_in_one_film_and_each_can_be_looked_at",
        f"{BROWSER}.test_an_answer_off_the_map_is_pointed_at",
        f"{BROWSER}.test_releases_pictures_and_toml_can_be_taken_away",
        f"{PROMISES}.test_a_film_has_the_clock_of_its_scenario",
    ),
    "A beside B: synced maps, same scales, differences, named versions": (
        f"{COMPARE}.test_two_named_versions_stand_side_by_side_and_move_together",
        f"{COMPARE}.test_links_of_one_version_only_are_those_of_the_released_policies",
        f"{COMPARE}.test_versions_are_in_the_link_and_can_be_removed",
        f"{OFFICER}.test_the_legend_of_two_maps_is_about_both",
        f"{OFFICER}.test_links_that_are_not_counted_are_a_bound_beside_another_version_too",
    ),
    "undo and redo with a list; nothing is lost by looking elsewhere": (
        f"{BROWSER}.test_the_history_is_a_list_to_go_back_and_forth_in",
        f"{BROWSER}.test_looking_at_another_scenario_loses_nothing",
    ),
    "watching: a ledger file, a store, a service with a read key; nothing private": (
        f"{LIVE}.test_answers_appear_on_the_page_as_they_come",
        f"{LIVE}.test_a_store_is_watched_without_touching_it",
        f"{LIVE}.test_a_service_shows_a_key_its_own_people",
        f"{PROMISES}.test_a_service_is_watched_on_the_page_with_a_key_that_may_only_read",
        f"{PROMISES}.test_a_store_is_watched_on_the_page",
        f"{LEAVING}.test_what_is_released_of_one_scenario_is_not_on_the_map_of_another",
        f"{WATCHED}.test_a_service_that_goes_away_and_comes_back_under_the_page",
    ),
    "a start: recent files, dropped files, a tour, a page without a scenario": (
        f"{START}.test_what_was_opened_lately_is_kept_for_this_user_alone",
        f"{START}.test_dropped_files_open_or_say_what_to_do",
        f"{LEAVING}.test_a_file_dropped_on_the_map_is_taken_as_on_the_start_page",
        f"{START}.test_the_tour_walks_through_every_station_and_back_home",
        f"{START}.test_the_start_page_is_for_everybody",
    ),
    "exports with legend, title, unit and fingerprint; one HTML to share": (
        f"{BROWSER}.test_releases_pictures_and_toml_can_be_taken_away",
        f"{BROWSER}.test_a_city_walk_is_exported_as_geojson",
    ),
    "the report: person picker, time slider, what was given away, now, lagged and hindsight": (
        f"{REPORT}.test_everybody_can_be_picked_and_says_what_was_given_away",
        f"{REPORT_BROWSER}.test_the_slider_moves_map_belief_estimates_and_charts_together",
        f"{REPORT_BROWSER}.test_everybody_can_be_picked_and_arrows_point_outside",
    ),
    "the report: windows, numbers in words, local time, collapsed repetition, paper": (
        f"{REPORT}.test_spending_is_drawn_against_every_part_of_the_limit",
        "test_words.test_a_statement_has_no_powers_however_much_was_told",
        f"{REPORT}.test_times_are_local_beside_utc_and_days_are_told_apart",
        f"{REPORT}.test_people_and_steps_that_say_the_same_are_one_row",
        f"{REPORT_BROWSER}.test_it_prints_on_few_pages_the_whole_time_and_no_controls",
    ),
    "the code: one state that never changes, small modules, a linter, tests of pure parts": (
        f"{PROMISES}.test_a_view_never_changes_and_a_change_makes_another",
        f"{MODULES}.test_a_module_holds_one_idea_and_says_which",
        f"{MODULES}.test_the_javascript_has_the_checked_style",
        f"{MODULES}.test_of_many_requests_only_the_newest_waits",
    ),
    "the code: native radios and inputs, only the parts of d3 that are used, no build step": (
        f"{AXE}.test_radios_are_one_stop_and_arrows_walk_between_them",
        f"{MODULES}.test_the_page_has_the_parts_of_d3_that_it_uses_and_no_others",
        f"{SERVER}.test_the_page_names_no_other_machine",
    ),
}
"""The sentences of what was to be built."""

DONE = {
    "open then save changes nothing, byte for byte": (
        f"{FAITHFUL}.test_opening_and_saving_changes_no_byte",
    ),
    "each finding is a browser or page test": (
        "test_studio_findings.test_every_sentence_has_its_tests",
        "test_report_findings.test_every_part_has_its_tests",
    ),
    "the page's numbers are those of check and design, at every step, before and after repair": (
        f"{FAITHFUL}.test_the_page_says_what_check_says_at_every_step",
        f"{SEEN}.test_what_is_seen_is_what_check_prints",
        f"{TRADEOFF}.test_an_interval_is_what_design_finds_for_the_same_budget",
    ),
    "the whole job in Chromium from an empty page": (
        f"{JOB}.test_the_whole_job_from_an_empty_page",
    ),
    "axe finds nothing in light and dark on all pages": (
        f"{AXE}.test_axe_finds_nothing_on_any_page",
        f"{AXE}.test_axe_finds_nothing_on_a_telephone",
        f"{WATCHED}.test_the_live_page_is_whole_and_readable_in_every_state",
        f"{START}.test_the_start_page_is_for_everybody",
        f"{REPORT_BROWSER}.test_axe_finds_nothing",
        f"{REPORT_BROWSER}.test_axe_finds_nothing_on_the_other_pages",
        "test_report_axe.test_axe_finds_nothing_in_any_state",
    ),
    "text of 12 px, contrast of text and of marks": (
        f"{SIZES}.test_nothing_sticks_out_or_is_cut_off_overprinted_or_small",
        f"{OFFICER}.test_axes_have_room_for_thousands_of_places_and_for_sixty_steps",
        f"{BROWSER}.test_every_text_is_large_and_dark_enough_on_every_tab",
        f"{FAITHFUL}.test_borders_and_marks_stand_out_from_what_lies_below",
        f"{REPORT}.test_marks_and_text_stand_out_in_light_dark_and_on_paper",
    ),
    "any two categories differ for every kind of eye, or have another symbol": (
        f"{FAITHFUL}.test_categories_differ_for_every_kind_of_eye_and_are_the_same_in_reports",
    ),
    "keyboard only from start to save": (f"{AXE}.test_from_start_to_save_by_keyboard_alone",),
    "nothing overflows, and what a task needs is above the fold, at five sizes": (
        f"{SIZES}.test_nothing_sticks_out_or_is_cut_off_overprinted_or_small",
        f"{BROWSER}.test_nothing_overflows_and_what_is_needed_is_above_the_fold",
        f"{AXE}.test_who_is_exposed_and_how_to_repair_it_is_above_the_fold",
    ),
    "5,000 cells are quick, 10,000 usable (make bench BENCH=studio has the times)": (
        f"{BROWSER}.test_five_thousand_cells_are_drawn_and_zoomed",
        f"{MAPS}.test_a_drawing_of_hexagons_asks_for_no_style_and_begins_no_path_for_each_side",
        f"{FAITHFUL}.test_an_answer_sums_its_noise_once_and_the_same_settings_never_again",
    ),
    "long work shows progress and can be stopped": (
        f"{PROMISES}.test_the_repair_of_873_exposed_places_shows_progress_and_can_be_stopped",
        f"{PROGRESS}.test_a_repair_shows_its_share_and_ends_in_the_server_when_it_is_stopped",
        f"{PROGRESS}.test_a_long_walk_shows_how_far_it_is_and_is_stopped",
        f"{LEAVING}.test_an_edit_ends_the_repair_of_the_setting_before",
    ),
    "new screenshots, made by a script": (
        "test_studio_findings.test_every_screenshot_of_readme_and_docs_is_made_by_the_script",
    ),
}
"""The lines of when it is done."""

TABLES = {"found": FINDINGS, "built": BUILT, "done": DONE}


@pytest.mark.parametrize(
    ("table", "sentence"), [(name, one) for name, table in TABLES.items() for one in table]
)
def test_every_sentence_has_its_tests(table: str, sentence: str) -> None:
    for name in TABLES[table][sentence]:
        module, _, test = name.rpartition(".")
        assert callable(getattr(import_module(f"tests.{module}"), test, None)), name
        assert test.startswith("test_"), name


def test_every_finding_but_the_reports_is_here() -> None:
    numbers = [int(finding.partition(".")[0]) for finding in FINDINGS]
    assert numbers == list(range(1, 11))


@pytest.mark.checkout
def test_every_screenshot_of_readme_and_docs_is_made_by_the_script() -> None:
    pytest.importorskip("playwright")
    from scripts.screenshots import FOLDER, PICTURES, REPORTS

    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name
        for page in pages
        for name in re.findall(r"screenshots/([\w-]+\.png)", page.read_text(encoding="utf-8"))
    }
    made = {*PICTURES, *REPORTS}
    assert {path.name for path in FOLDER.iterdir()} == made
    assert shown <= made
    assert "city-dark.png" in shown
