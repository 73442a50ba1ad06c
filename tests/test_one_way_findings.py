"""What was found when a release could be had by six routes, and which tests hold each.

A table to find them by; each name must be that of a test.
"""

from __future__ import annotations

import pytest

from tests.findings import check_tests

FINDINGS = {
    "1. keyed noise repeats across days": (
        "test_release.test_two_days_under_one_key_share_no_noise",
        "test_release.test_another_client_law_or_query_name_gets_other_noise",
        "test_release.test_a_key_without_a_time_is_refused",
        "test_release.test_the_encoding_of_a_question_has_fixed_vectors",
        "test_spark_partition.test_two_days_share_no_more_answers_than_fresh_noise_would",
    ),
    "2. one key, scenario and trip give different answers by route": (
        "test_release.test_one_key_gives_one_answer_by_every_route",
        "test_service_moments.test_one_key_gives_one_answer_by_every_route",
        "test_routes.test_random_trips_are_answered_alike_by_every_route",
        "test_routes.test_random_trips_are_answered_alike_by_every_route_in_many_worlds",
        "test_routes.test_random_trips_are_answered_alike_by_spark_itself",
    ),
    "3. threads get second answers for nothing": (
        "test_release.test_threads_on_one_stream_get_one_answer_a_moment",
        "test_release.test_threads_on_one_stream_get_one_answer_a_moment_ten_thousand_times",
        "test_batch.test_threads_on_one_batch_give_one_answer_a_moment_and_the_ledgers_agree",
    ),
    "4. rules of admission stand in five places and one has drifted": (
        "test_release.test_a_file_with_a_row_too_far_spends_nothing",
        "test_release_admission.test_every_book_gives_the_verdicts_of_the_plain_rules",
        "test_when.test_every_book_gives_the_verdicts_of_the_plain_rules",
        "test_windows_routes.test_a_service_gives_the_verdicts_of_the_plain_rules",
        "test_spark_partition.test_every_row_gets_the_verdict_that_the_local_engine_gives",
    ),
    "5. a stream cannot be resumed": (
        "test_release.test_a_stream_goes_on_from_its_standing_to_the_last_bit",
        "test_release.test_a_damaged_standing_is_refused",
        "test_release.test_a_standing_of_another_law_is_refused",
        "test_release_streams.test_a_stream_goes_on_from_its_book",
    ),
    "6. concepts built twice": (
        "test_studio_faithful.test_the_page_says_what_check_says_at_every_step",
        "test_studio_tradeoff.test_every_point_is_what_check_says_of_the_file_with_its_changes",
        "test_report.test_the_statement_is_the_accounts_own",
        "test_receiving.test_a_body_that_breaks_off_is_no_body",
    ),
    "7. the public surface surprises": (
        "test_arguments.test_swapped_arguments_are_named",
        "test_arguments.test_a_wrong_argument_is_refused_by_its_name",
        "test_arguments.test_a_float_epsilon_is_its_decimal",
        "test_ledger.test_floats_and_texts_of_a_limit_allow_the_same_number_of_releases",
        "test_surface.test_every_parameter_is_documented",
        "test_surface.test_examples_import_from_dphmm_alone",
    ),
    "a changed scenario is asked for the same slot": (
        "test_release_changes.test_an_answered_slot_keeps_its_answer_whatever_the_scenario_becomes",
        "test_release_changes.test_by_hand_too_an_answered_slot_is_not_answered_again",
        "test_release_changes.test_the_command_line_keeps_answers_through_every_change",
        "test_spark_partition.test_an_answered_slot_is_not_answered_again_by_a_changed_scenario",
        "test_service_moments.test_a_changed_law_goes_on_when_it_is_adopted_and_a_key_when_it_is_rotated",
    ),
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_every_finding_has_its_tests(finding: str) -> None:
    check_tests(FINDINGS[finding])
