"""What was found about promises that did not hold, and which tests hold that they do.

A table to find them by; each name must be that of a test, or of a file of `make bench`.
"""

from __future__ import annotations

from importlib import import_module

from tests.findings import check_tests

FINDINGS = {
    "1. learned zeros are treated as facts": (
        "test_promise_zeros.test_a_state_that_the_model_forbids_loses_no_more_than_the_release_says",
        "test_promise_zeros.test_a_bus_that_stays_at_the_far_stop_is_told_what_it_loses",
        "test_promise_zeros.test_zeros_that_only_the_memory_shows_are_a_condition",
        "test_promise_adopting.test_whoever_moved_as_the_new_model_says_is_possible_has_its_promise",
        "test_promise_adopting.test_a_start_that_other_states_brought_is_where_the_next_law_begins",
        "test_anywhere.test_a_model_of_five_people_follows_others_in_the_made_up_city",
    ),
    "2. several queries at one time": (
        "test_promise_questions.test_several_questions_share_what_hides_a_state",
        "test_promise_questions.test_one_step_has_one_location_set_for_all_its_questions",
        "test_stream.test_what_hides_a_state_from_one_query_hides_it_from_the_next",
        "test_paper_notes.test_every_test_named_in_the_notes_exists",
    ),
    "3. times are published as they came": (
        "test_release.test_times_in_answers_and_ledger_are_the_steps_own",
        "test_promise_routes.test_planted_times_are_in_nothing_that_was_written",
        "test_when.test_lines_do_not_say_which_steps_had_a_row",
        "test_when.test_a_late_row_of_a_filled_step_gets_the_answer_that_was_given",
        "test_promise_gaps.test_an_answer_of_a_stay_that_nobody_made_has_its_condition",
    ),
    "4. a draw can take seconds, inside a transaction": (
        "test_promise_routes.test_nothing_is_drawn_while_a_store_is_being_written",
        "test_service.test_a_smaller_largest_price_never_refuses_the_scenarios_own",
        "test_envelope.test_draws_in_bulk_have_the_exact_probabilities",
    ),
    "5. the audit passes mechanisms with infinite epsilon": (
        "test_audit_search.test_a_mechanism_that_prints_the_state_is_caught",
        "test_audit_search.test_a_mechanism_whose_parity_names_the_state_is_caught",
        "test_audit_search.test_leaks_of_one_percent_are_caught",
    ),
    "6. smaller untruths": (
        "test_promise_before.test_a_check_begins_where_the_start_is_known",
        "test_promise_adopting.test_a_reader_is_said_to_know_earlier_answers_where_the_numbers_"
        "count_on_them",
        "test_adversary.test_case_ii_exposes_a_state_that_the_model_ruled_out",
        "test_hull.test_in_the_plane_laplace_is_never_better_than_k_norm_noise",
        "test_repair.test_each_method_joins_s3_to_its_own_partner_in_example_6_1",
        "test_repair.test_the_smallest_area_of_example_6_1_is_the_largest_error",
        "test_bound.test_on_a_line_it_is_the_error_of_geometric_noise_in_steps_of_the_sensitivity",
        "test_promise_readers.test_whoever_holds_other_states_possible_also_hears_those_that_stand_in_for_them",
    ),
}

DONE_WHEN = {
    "no loss exceeds what release, ledger and statement say": (
        "test_promise.test_nothing_printed_is_less_than_what_answers_tell",
        "test_promise.test_nothing_printed_is_less_than_what_answers_tell_in_many_worlds",
        "test_promise_routes.test_nothing_printed_on_any_route_is_less_than_what_answers_tell",
        "test_promise_laws.test_nothing_printed_after_a_change_is_less_than_what_answers_tell",
    ),
    "a model of five people does not stick, and its estimate is no worse than the answer": (
        "test_anywhere.test_a_model_of_five_people_follows_others_in_the_made_up_city",
        "test_anywhere.test_a_model_of_five_people_follows_others_in_geolife",
    ),
    "every control is caught in 20 of 20 runs, and nothing of ours is accused": (
        "test_audit.test_the_command_catches_every_control_and_accuses_no_real_mechanism",
        "test_audit.test_twenty_commands_catch_every_control_and_accuse_nobody",
        "test_audit_search.test_leaks_of_one_percent_are_caught",
    ),
    "planted times are found nowhere": (
        "test_promise_routes.test_planted_times_are_in_nothing_that_was_written",
    ),
}

MEASURED = {
    "learned models within 1.15 and 1.2 times the time": "bench_learned",
    "draws within 10 times of epsilon 1, four dimensions 10 times faster": "bench_sampler",
}


def test_every_finding_has_its_tests() -> None:
    for held in (FINDINGS, DONE_WHEN):
        for names in held.values():
            check_tests(names)


def test_what_is_timed_is_a_file_of_the_bench() -> None:
    for name in MEASURED.values():
        assert callable(import_module(f"benchmarks.{name}").run), name
