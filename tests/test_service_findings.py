"""What was found around the service's core, and which tests hold that it stays repaired.

A table to find them by; each name must be that of a test.
"""

from __future__ import annotations

import pytest

from tests.findings import check_tests

FINDINGS = {
    "1. erasing a person lifts an exhausted budget": (
        "test_store_kept.test_an_erased_person_who_is_made_known_again_has_the_budget_that_was_left",
        "test_store_kept.test_a_window_that_was_full_when_somebody_was_erased_is_full_when_they_come_back",
        "test_store_kept.test_a_closed_tombstone_opens_neither_slots_nor_budgets",
        "test_service_moments.test_erasing_does_not_fill_a_budget_again",
        "test_service.test_an_erased_person_cannot_start_afresh",
    ),
    "2. one bad request fails other tenants' releases": (
        "test_service_moments.test_a_fault_of_one_request_stays_its_own",
        "test_service_isolation.test_a_damaged_person_fails_alone",
        "test_service.test_a_price_with_too_many_digits_is_refused_before_it_is_used",
        "test_service_isolation.test_prices_whose_sum_could_not_be_printed_are_refused",
        "test_service_isolation.test_no_scenario_has_such_a_price_of_its_own",
    ),
    "3. the database password, hosts and paths are told to strangers": (
        "test_store_kept.test_no_message_has_the_password_of_an_address",
        "test_store_faults.test_an_error_never_shows_the_password_of_the_address",
        "test_service_faults.test_a_store_in_trouble_is_a_503_that_says_what_to_do",
        "test_service_isolation.test_a_store_that_cannot_be_written_is_not_asked_for_each",
        "test_service_processes.test_an_address_with_a_password_is_in_no_argument",
        "test_store_cli.test_no_password_is_an_argument",
        "test_store_cli.test_an_address_may_come_from_the_environment_or_a_closed_file",
    ),
    "4. one release, or one scenario, stalls everybody": (
        "test_service_isolation.test_a_long_way_is_gone_elsewhere_and_the_answer_is_the_same_one_again",
        "test_service_isolation.test_nobody_else_waits_for_a_scenario_that_is_being_prepared",
        "test_service_isolation.test_what_takes_too_long_is_ended_and_the_next_one_runs",
        "test_service_isolation.test_what_takes_too_much_memory_is_refused",
        "test_service_isolation.test_closing_ends_what_runs_at_once",
        "test_service_isolation.test_clients_take_turns_and_a_client_may_not_have_many_waiting",
        "test_service_attack.test_an_attack_is_not_noticed_by_another_client",
    ),
    "5. a rollback is undetected, and recovery has no command": (
        "test_store_kept.test_an_old_copy_answers_nothing_until_it_is_recovered",
        "test_store_kept.test_a_hundred_old_copies_answer_nothing_until_they_are_recovered",
        "test_store_kept.test_a_file_without_its_log_is_behind",
        "test_store_kept.test_a_store_on_postgresql_that_went_back_is_refused_while_servers_run",
        "test_store_kept.test_a_commit_is_anchored_before_it_is_said_also_by_somebody_else",
        "test_store_cli.test_a_lost_store_is_restored_recovered_and_its_budgets_are_lowered",
    ),
    "6. a wrong tombstone secret gives second answers": (
        "test_store_faults.test_another_secret_of_the_tombstones_is_refused",
        "test_store_cli.test_every_command_refuses_a_wrong_secret",
    ),
    "7. good keys are locked out by strangers": (
        "test_service.test_an_address_that_guesses_keys_does_not_reach_the_store_and_locks_nobody_out",
        "test_service_processes.test_an_address_is_believed_only_from_a_proxy_that_was_named",
    ),
    "8a. a release-only key may set any epsilon": (
        "test_service.test_a_price_above_the_scenarios_own_is_refused",
        "test_service.test_a_service_may_allow_a_larger_price",
    ),
    "8b. a frozen PostgreSQL, half-sent requests, bodies before scopes": (
        "test_store_kept.test_a_server_that_is_frozen_is_given_up",
        "test_store_kept.test_a_statement_that_takes_too_long_is_ended",
        "test_service_attack.test_an_attack_is_not_noticed_by_another_client",
        "test_service_contract.test_a_body_is_not_parsed_before_the_scope_is_asked",
        "test_service_faults.test_a_body_that_does_not_come_is_given_up",
    ),
    "8c. verify is content with a store that is not sound": (
        "test_store_faults.test_verify_sees_every_kind_of_damage",
        "test_store_kept.test_verify_finds_a_planted_fault",
        "test_store_kept.test_verify_finds_a_belief_that_was_zeroed_with_a_checksum_of_its_own",
        "test_store_kept.test_verify_finds_an_end_that_was_cut_so_that_everything_adds_up",
    ),
    "8d. --init, a full disk, an open reader, rights of files, names that were lost": (
        "test_store_cli.test_the_first_key_is_kept_or_not_made_and_made_once",
        "test_service_faults.test_a_store_that_cannot_be_written_is_not_ready_and_the_process_is_alive",
        "test_service_faults.test_whether_a_store_can_be_written_is_tried",
        "test_store_kept.test_a_reader_that_is_open_does_not_keep_the_name",
        "test_store_kept.test_a_reader_that_never_ends_is_named_and_the_log_is_emptied_after_it",
        "test_store_kept.test_files_are_closed_to_others",
        "test_service_contract.test_a_name_that_is_not_utf_8_is_nobody",
    ),
    "9. seven failures of the contract": (
        "test_service_contract.test_a_stranger_finds_nothing",
        "test_service_contract.test_a_whole_number_may_be_written_with_a_point",
        "test_service_contract.test_an_empty_scenario_is_refused_by_the_page_too",
        "test_service_contract.test_all_methods_of_a_path_are_named",
        "test_service_contract.test_a_refusal_of_metrics_is_json_as_described",
        "test_service_contract.test_a_name_in_parts_is_refused",
        "test_service_openapi.test_the_openapi_page_tells_the_truth",
    ),
    "a server that has just started refuses those who come at once": (
        "test_service_isolation.test_all_who_come_while_a_scenario_is_prepared_wait_for_that_once",
    ),
    "10. few releases a second": (  # measured by benchmarks/bench_service.py
        "test_store_recall.test_one_row_after_another_is_one_transaction_each",
        "test_service_shortcut.test_both_ways_say_the_same",
    ),
    "a tenant's bodies fill the memory, and names stand twice": (
        "test_service_faults.test_a_client_has_few_bytes_under_way_and_others_have_theirs",
        "test_service_faults.test_a_name_that_is_there_twice_is_refused",
        "test_service_batches.test_a_stream_that_unpacks_to_a_flood_ends_alone",
    ),
    "a tenant's file of a model reaches into a worker's memory": (
        "test_scenario.test_a_model_file_of_a_stranger_is_refused_before_it_is_used",
        "test_scenario.test_a_model_file_with_a_broken_stream_is_refused",
    ),
    "an operator's slip of the pen is not heard, or costs the store its anchor": (
        "test_service_settings.test_a_variable_that_is_nearly_a_setting_is_refused",
        "test_service_settings.test_a_setting_that_is_none_is_refused",
        "test_store_kept.test_a_store_does_not_need_an_anchor_that_could_never_be_written",
    ),
    "kills, full and read-only disks, lost and frozen databases, several servers": (
        "test_store_crash.test_two_hundred_kills_lose_nothing_on_sqlite",
        "test_store_crash.test_two_hundred_kills_lose_nothing_on_postgresql",
        "test_store_crash.test_two_hundred_kills_keep_everything_on_sqlite",
        "test_store_crash.test_two_hundred_kills_keep_everything_on_postgresql",
        "test_store_crash.test_two_hundred_strikes_at_servers_on_one_file_lose_nothing",
        "test_store_crash.test_two_hundred_strikes_at_servers_on_one_postgresql_lose_nothing",
    ),
}

BUILT = {
    "Isolation: savepoints, bounds, long work elsewhere, quotas": (
        "test_service_moments.test_a_fault_of_one_request_stays_its_own",
        "test_service_isolation.test_a_short_queue_does_not_wait_behind_a_long_one",
        "test_service_isolation.test_a_client_has_so_many_scenarios_states_and_people",
        "test_service_isolation.test_too_many_states_or_bytes_are_refused",
    ),
    "Nothing is forgotten: tombstones, chains, roots, anchors, copies, recovery, fingerprints": (
        "test_store_kept.test_a_tombstone_keeps_a_hash_prices_slots_and_the_head_and_nothing_else",
        "test_store_kept.test_servers_that_commit_at_once_take_different_roots",
        "test_store_kept.test_a_commit_is_anchored_before_it_is_said_also_by_somebody_else",
        "test_store_kept.test_a_backup_that_its_anchor_knows_goes_on_at_once",
        "test_store_kept.test_budgets_are_lowered_and_never_below_what_was_spent",
        "test_store_faults.test_another_secret_of_the_tombstones_is_refused",
    ),
    "Doors: keys, acts, proxies, limits, names": (
        "test_service_keys.test_a_key_is_made_listed_exchanged_expired_and_revoked",
        "test_service_keys.test_what_was_done_is_written_down_without_saying_whom_about",
        "test_service_processes.test_an_address_is_believed_only_from_a_proxy_that_was_named",
        "test_service_contract.test_a_body_is_not_parsed_before_the_scope_is_asked",
        "test_service_contract.test_a_name_in_parts_is_refused",
    ),
    "For operators: probes, workers, settings, logs, traces, drain, migrations, retention, image": (
        "test_service_faults.test_a_store_that_says_nothing_is_not_ready",
        "test_service_workers.test_processes_may_be_killed_and_nothing_is_lost",
        "test_service_settings.test_the_table_of_the_docs_has_every_setting_and_its_default",
        "test_service.test_a_line_of_the_log_names_no_person_key_state_or_duration",
        "test_service.test_metrics_count_and_measure_no_time",
        "test_service_tracing.test_no_span_names_anybody",
        "test_service_processes.test_a_server_that_is_told_to_stop_finishes_what_it_accepted",
        "test_store_kept.test_a_store_that_was_migrated_under_a_running_server_is_left_alone",
        "test_store_cli.test_expire_erases_and_closes",
        "test_deploy.test_the_steps_of_the_image_work_in_a_clean_folder",
        "test_deploy.test_the_steps_of_the_image_work_with_its_own_packages",
        "test_deploy.test_the_unit_keeps_secrets_and_gives_time_to_stop",
        "test_deploy.test_the_compose_file_is_right",
        "test_deploy.test_what_is_shipped_keeps_the_tick",
    ),
    "Throughput: batches in three forms, pages": (
        "test_service_batches.test_rows_are_the_same_in_every_form",
        "test_service_batches.test_what_is_wrong_with_a_row_is_said_in_its_place",
        "test_service.test_people_come_in_pages",
        "test_client.test_the_service_pages_a_ledger",
    ),
    "A client": (
        "test_client.test_what_may_be_asked_again_is",
        "test_client.test_both_clients_do_the_same_and_are_documented",
        "test_client.test_results_have_every_field_of_the_services_page",
    ),
    "Planted secrets, names and states are nowhere": (
        "test_service_leaks.test_every_route_was_asked",
        "test_service_leaks.test_nothing_planted_is_in",
        "test_service_leaks.test_no_file_has_a_secret_or_a_state",
        "test_service_leaks.test_a_leak_is_found",
    ),
    "Attack, contract, memory and page": (
        "test_service_attack.test_an_attack_is_not_noticed_for_a_minute",
        "test_service_attack.test_an_attack_is_not_noticed_on_postgresql",
        "test_service_contract.test_a_patient_stranger_finds_nothing",
        "test_service_processes.test_memory_stays_flat_for_ten_minutes",
        "test_operating.test_every_line_of_the_page_works",
        "test_operating.test_every_line_of_the_page_works_with_postgresql",
        "test_operating.test_every_command_on_the_page_is_run",
    ),
}
"""What was to be built, and what it is done by."""


@pytest.mark.parametrize("part", BUILT)
def test_everything_that_was_built_has_its_tests(part: str) -> None:
    check_tests(BUILT[part])


@pytest.mark.parametrize("finding", FINDINGS)
def test_every_finding_has_its_tests(finding: str) -> None:
    check_tests(FINDINGS[finding])
