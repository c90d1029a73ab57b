"""Lies about what is sent, read and counted."""

from bench.mutants.mutant import Check, Edit, Mutant, Test

RECORD, TALLY, LOAD = (
    "loadgen/core/record.pyx",
    "loadgen/core/accumulator.pyx",
    "loadgen/client/load_loop.py",
)
ANSWER = "loadgen/core/answer.pyx"
DISTORTION, COUNTS = "loadgen/checks/distortion.py", "loadgen/checks/token_counts.py"
BOUND = "loadgen/checks/check.py"
READ_LOOP = "loadgen/core/read_loop.pyx"
ARRIVALS = "loadgen/core/arrivals.pyx"
CONNECTION, STATISTIC = "loadgen/core/stamped_connection.pyx", "loadgen/metrics/statistic.py"
STAMPS = "tests/integration/faults/test_kernel_stamps.py"
PLAIN = "loadgen/client/aiohttp_transport.py"
AGREEMENT = (
    "tests/integration/faults/test_aiohttp_transport.py::"
    "test_both_transports_agree_where_the_truth_is_known"
)
WAITS = "tests/integration/faults/test_read_loop_waits.py"
CLOCK, PACER = "loadgen/util/clock.py", "loadgen/core/pacer.pyx"
READING = "tests/qa/accuracy/test_stalls.py"
STALLS = (
    Edit(LOAD, "self.pacer.start()\n", "self.pacer.start()\n                self._stall()\n"),
    Edit(
        LOAD,
        "    def stop(self",
        "    def _stall(self) -> None:\n        import asyncio\n        import time\n\n"
        "        time.sleep(0.005)\n"
        "        asyncio.get_running_loop().call_later(0.02, self._stall)\n\n    def stop(self",
    ),
)
SHORT = "--engine sim --rate 200 --num-prompts 400 --random-input-len 16 --random-output-len 8"

MEASUREMENT_LIES = (
    Mutant(
        "stamp after an await",
        (
            Edit(
                CONNECTION,
                "connection._read(buffer, n, now_ns(), on_real_ns, n < READ_BYTES)",
                "connection.read_loop.loop.call_soon(connection.data_received, buffer[:n])",
            ),
        ),
        Test("tests/core/test_stamped_connection.py::test_read_loop_stamps_before_anything_else_runs"),
    ),
    Mutant(
        "believe the stamp of a segment behind a lost one",
        (Edit(ARRIVALS, "is_stamped and is_early(", "False and is_early("),),
        Test("tests/core/test_stamped_connection.py::test_reordered_token_came_between_its_stamp_and_its_reading"),
    ),
    Mutant(
        "overlook a stall whose alarm was handled before the sockets were read",
        (Edit(READ_LOOP, "hook.stalled_ns >= self.asked_ns", "False"),),
        Test("tests/core/test_stamped_connection.py::test_tokens_read_in_the_turn_of_a_late_alarm_may_have_come_in_the_stall"),
    ),
    Mutant(
        "read while the event loop has something to do",
        (Edit(READ_LOOP, "epoll_ctl(self.fd, EPOLL_CTL_ADD, self.loop_fd, &event)", "pass"),),
        Test(f"{WAITS}::test_event_loop_does_what_it_has_to_do"),
    ),
    Mutant(
        "believe a bound that the stamp contradicts",
        (Edit(READ_LOOP, "since_ns if since_ns <= at_ns", "since_ns if True"),),
        Test("tests/core/test_stamped_connection.py::test_tokens_waited_longer_than_the_loop_was_late_where_the_last_one_did"),
    ),
    Mutant(
        "bound other events than those that were read",
        (Edit(ANSWER, "            self.events_before -= 1", "            pass"),),
        Test("tests/core/test_stamped_connection.py::test_tokens_read_with_the_end_are_bounded_behind_an_event_without_a_token"),
    ),
    Mutant(
        "leave the client's lag out of the bound",
        (Edit(TALLY, "due_late = due + max(record.get_lag_ns(), 0)", "due_late = due"),),
        Test("tests/metrics/test_statistic.py::test_lag_is_in_the_error_of_latencies_from_due"),
    ),
    Mutant(
        "time from sent instead of due",
        (Edit(TALLY, "self.ttft_due.add(first - due, ", "self.ttft_due.add(first - sent, "),),
        Test("tests/metrics/test_recorder_latencies.py::test_ttft_is_the_first_token_from_due_and_from_sent"),
    ),
    Mutant(
        "pace with asyncio.sleep",
        (
            # The pacer's alone: the loop probe's alarm bounds how long a poll waits.
            Edit(PACER, "import KERNEL\n", "import KERNEL, LoopAlarm\n"),
            Edit(
                PACER,
                "\n        self._alarm = self._clock.alarm(asyncio.get_running_loop()",
                "\n        self._alarm = LoopAlarm(asyncio.get_running_loop()",
            ),
            Edit(PACER, "self._hook.due_ns = at_ns + TURN_NS if", "_ = at_ns + TURN_NS if"),
            Edit(
                CLOCK,
                "call_later(max(0, due_ns - now_ns()) / NS_PER_S, self._ring)",
                "call_later(-(-max(0, due_ns - now_ns()) // 1_000_000) / 1_000, self._ring)",
            ),
        ),
        Check("gaps off schedule", "--engine sim --rate 500 --num-prompts 1000 "
                                   "--random-input-len 16 --random-output-len 2"),
    ),
    Mutant(
        "connector limit 100",
        (
            Edit(
                "loadgen/util/dialer.py",
                "        step = LOOKING_UP\n",
                "        while self._turn >= 100:\n            await asyncio.sleep(0.01)\n"
                "        step = LOOKING_UP\n",
            ),
        ),
        Test(
            "tests/integration/regressions/test_connections.py::"
            "test_hundreds_of_requests_do_not_wait_for_connections"
        ),
    ),
    Mutant("5 ms loop stalls", STALLS, Test(f"{READING}::test_few_tokens_are_read_late")),
    Mutant(
        "5 ms loop stalls, without stamps of the kernel's",
        (
            *STALLS,
            Edit(
                "loadgen/core/c/kernel.pxd",
                "return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0;",
                "return 0;",
            ),
        ),
        Test(f"{READING}::test_client_error_is_less_than_a_stall"),
    ),
    Mutant(
        "a client error that is too small",
        (
            Edit(
                STATISTIC,
                "return max(greatest - value, value - least)",
                "return 0.5 * max(greatest - value, value - least)",
            ),
        ),
        Test("tests/metrics/test_statistic.py::test_error_reaches_both_ends_of_the_intervals"),
    ),
    Mutant(
        "times of reading sold as stamps of the kernel's",
        (
            Edit(
                ARRIVALS,
                "            at_ns = clock.monotonic_ns(on_real_ns)\n            if clock.",
                "            if clock.",
            ),
        ),
        Test(f"{STAMPS}::test_interval_holds_the_truth_while_the_client_stalls"),
    ),
    Mutant(
        "tokens read together are all exact",
        (Edit(ARRIVALS, "record.set_earliest(first, exact_from, earliest_ns)", "pass"),),
        Test(f"{STAMPS}::test_interval_holds_the_truth_while_the_client_stalls"),
    ),
    Mutant(
        "forget bytes that are still unread",
        (Edit(ARRIVALS, "cdef bint ends_read = self.emptied and ", "cdef bint ends_read = "),),
        Test("tests/core/test_stamped_connection.py::test_stamp_of_a_read_that_left_bytes_is_not_exact"),
    ),
    Mutant(
        "count segments that the kernel had counted before",
        (Edit("loadgen/core/c/segments.pxd", "        has_agreed\n        and ", "        "),),
        Test("tests/integration/faults/test_read_loop.py::test_segment_that_was_counted_early_is_not_counted_again"),
    ),
    Mutant(
        "miss a step of the clock",
        (
            Edit(
                "loadgen/core/kernel_clock.pyx",
                "self.usable = self.paired_ns == 0 or",
                "self.usable = True or self.paired_ns == 0 or",
            ),
        ),
        Test("tests/core/test_kernel_clock.py::test_stamps_are_unusable_after_a_step_until_the_next_pair"),
    ),
    Mutant(
        "drop late replies",
        (
            Edit(
                "loadgen/core/record_counter.pyx",
                "        self.ended += 1\n",
                "        if record.outcome is OK and record.last_token - record.due > 60000000:\n"
                "            return\n"
                "        self.ended += 1\n",
            ),
        ),
        Check("requests not ended once", SHORT),
    ),
    Mutant(
        "count failures as latency",
        (Edit(TALLY, "if record.outcome is OK:", "if record.events:"),),
        Test("tests/metrics/test_recorder.py::test_failure_adds_to_no_latency_and_no_sum_of_tokens"),
    ),
    Mutant(
        "average shard percentiles",
        (
            Edit(
                "loadgen/metrics/snapshot.py",
                '        for name in ("targets", "classes"):\n            pairs',
                '        parts = self.histograms.items()\n'
                '        changes["histograms"] = {name: _mean(part, other.histograms[name]) for '
                'name, part in parts}\n'
                '        for name in ("targets", "classes"):\n            pairs',
            ),
            Edit(
                "loadgen/metrics/snapshot.py",
                "def _array(",
                "def _mean(a: Histogram, b: Histogram) -> Histogram:\n    mean = Histogram()\n"
                "    for rank in range(101 if a.count and b.count else 0):\n"
                "        mean.record(int((a.percentile(rank) + b.percentile(rank)) / 2))\n"
                "    return mean\n\n\ndef _array(",
            ),
        ),
        Test("tests/metrics/test_snapshot.py::test_merged_percentiles_are_of_all_values_not_a_mean"),
    ),
    Mutant(
        "count an event as a token",
        (Edit(RECORD, "            return self.completion_tokens\n", "            return "
                                                                     "self.events\n"),),
        Test("tests/integration/regressions/test_tokens.py::test_usage_counts_the_tokens_and_events_do_not"),
    ),
    Mutant(
        "ignore histogram rejects",
        (Edit("loadgen/core/histogram.pxd", "self.rejects += count", "pass"),),
        Test("tests/checks/test_accounting.py::test_a_latency_below_zero_is_out_of_range"),
    ),
    Mutant(
        "idle connections unbounded",
        (
            Edit(
                "loadgen/core/pool.pyx",
                "room = self.peak + self._spare() - self._in_use - self.opening - len(self)",
                "room = count",
            ),
        ),
        Test("tests/core/test_pool.py::TestBudget::test_one_more_than_were_in_flight_at_once"),
    ),
    Mutant(
        "one connection opened at a time",
        (
            Edit(
                "loadgen/core/pool.pyx",
                "limit = AT_ONCE - self.beginning",
                "limit = 1 - self.opening",
            ),
        ),
        Test("tests/core/test_pool.py::TestBudget::test_a_high_rate_gets_them_as_soon_as_it_wants_them"),
    ),
    Mutant(
        "spare connections opened for late requests",
        (
            Edit(
                "loadgen/core/pool.pyx",
                "elif not self.waiting and self._opens_ahead():",
                "elif self._opens_ahead():",
            ),
        ),
        Test("tests/core/test_pool.py::TestLate::test_a_stall_of_the_client_opens_no_storm"),
    ),
    Mutant(
        "idle connections used without a witness",
        (
            Edit(
                "loadgen/core/keep_alive.pyx",
                "return connection.idle_since - oldest.idle_since > MARGIN_NS and oldest.is_open()",
                "return True",
            ),
        ),
        Test("tests/core/test_keep_alive.py::TestAge::test_one_is_used_for_a_second_where_nothing_shows_more"),
    ),
    Mutant(
        "clip the schedule on overload",
        (
            Edit(
                "loadgen/core/schedule.pyx",
                "                self._next += 1\n",
                "                self._next += 1\n                if at_ns - due_ns > 1_000_000:\n"
                "                    continue\n",
            ),
        ),
        Test("tests/core/test_pacer.py::test_requests_are_never_early_or_skipped_with_late_alarms"),
    ),
    Mutant(
        "prompt + 3 tokens",
        (
            Edit(
                "loadgen/workload/endpoints/api.py",
                '"content": prompt.text}',
                '"content": prompt.text + " badu kemo badu"}',
            ),
        ),
        Check("input length off", SHORT),
    ),
    Mutant(
        "ignore `reasoning`",
        (
            Edit(
                "loadgen/core/c/json_scan.pxd",
                "ok = is_new_key(&seen_keys, 2) and scan_text(c, out, REASONING, 0, 0)",
                "ok = is_new_key(&seen_keys, 2) and skip_value(c)",
            ),
        ),
        Test("tests/core/test_sse_recorded.py"),
    ),
    Mutant(
        "count the role chunk as first token",
        (
            Edit(
                "loadgen/core/c/json_scan.pxd",
                '            ok = is_new_key(&seen_keys, 16) and take_null(c)\n',
                '            ok = is_new_key(&seen_keys, 16) and take_null(c)\n'
                '        elif text_is(&key, b"role", 4):\n            ok = scan_text(c, out, '
                'CONTENT, EMPTY, 0)\n',
            ),
        ),
        Test("tests/integration/regressions/test_tokens.py::test_the_chunk_that_names_the_role_is_no_token"),
    ),
    Mutant(
        "a cold cache is not emptied",
        (Edit("loadgen/runner/server_calls.py", "if self._settings.cache == COLD:", "if False:"),),
        Test("tests/integration/library/test_prefix_cache.py::test_a_cold_cache_has_what_the_run_shares"),
    ),
    Mutant(
        "salted prompts have no salt",
        (Edit("loadgen/runner/prompt_source.py", "if salt is None:", "if True:"),),
        Test("tests/integration/library/test_prefix_cache.py::test_a_salt_hides_earlier_runs_and_no_sharing_within_the_run"),
    ),
    Mutant(
        "warm-ups send the run's own prompts",
        (
            Edit(
                "loadgen/runner/loop_stages.py",
                'repeats_first = settings.warmup_prompt == "first"',
                "repeats_first = True",
            ),
        ),
        Test("tests/integration/library/test_rehearsal.py::test_warmup_prompts_are_not_prompts_of_the_run"),
    ),
    Mutant(
        "drop tokens without text",
        (Edit(ANSWER, "        if missing > 0:\n", "        if missing > 1 << 30:\n"),),
        Test("tests/core/test_answer_evidence.py::test_silent_events_between_texts_are_tokens_in_their_places"),
    ),
    Mutant(
        "take an aborted answer for a good one",
        (
            Edit(
                "loadgen/core/finish_reasons.py",
                "return word in FAILED or (",
                "return False and (",
            ),
        ),
        Test("tests/core/test_answer_evidence.py::test_finish_reason_of_a_failure_fails"),
    ),
    Mutant(
        "fail an answer whose connection breaks after its end",
        (
            Edit(
                "loadgen/core/http1.pyx",
                "if self._has_answer(COMPLETE) and not",
                "if False and not",
            ),
        ),
        Test("tests/core/test_answer_evidence.py::test_connection_that_breaks_after_the_end_fails_nothing"),
    ),
    Mutant(
        "take the first bytes of an event for those of the one before",
        (
            Edit(
                "loadgen/core/c/json_scan.pxd",
                "0 < head.n < n and memcmp(p, head.bytes, head.n) == 0",
                "0 < head.n < n",
            ),
        ),
        Test("tests/core/test_sse.py::test_an_error_behind_an_event_of_as_many_bytes_is_an_error"),
    ),
    Mutant(
        "count a repeated answer again",
        (Edit("loadgen/core/c/repeated_text.pxd", "again = before.size", "again = 0"),),
        Test("tests/core/test_answer_evidence.py::test_last_event_that_repeats_the_answer_adds_its_growth_alone"),
    ),
    Mutant(
        "look at no unknown key",
        (Edit("loadgen/core/reference_parser.py", "    pairs += [(key, [", "    [(key, ["),),
        Test("tests/core/test_answer_evidence.py::test_text_under_other_keys_is_a_token"),
    ),
    Mutant(
        "take an opening chunk for the first token",
        (Edit(ANSWER, "if missing == heads:", "if missing > 0:"),),
        Test("tests/core/test_answer_evidence.py::test_heads_without_text_are_tokens_only_where_the_server_sends_one_event_per_token"),
    ),
    Mutant(
        "believe text under unknown keys",
        (Edit(COUNTS, "if keys and surplus / ok >", "if False and surplus / ok >"),),
        Test("tests/checks/test_token_counts.py::test_one_more_event_is_suspect_where_text_under_unknown_keys_was_a_token"),
    ),
    Mutant(
        "take a first event of many tokens for one",
        (Edit(COUNTS, "MAX_FIRST_EVENT = Bound(0.05,", "MAX_FIRST_EVENT = Bound(9.0,"),),
        Test("tests/checks/test_token_counts.py::test_tokens_of_the_first_event_must_matter_little"),
    ),
    Mutant(
        "print another number than was compared with the bound",
        (Edit(BOUND, "{quantity(measured, self.unit)}", "{quantity(0, self.unit)}"),),
        Test("tests/checks/test_bound.py::test_state_numbers_and_texts_of_every_check_agree"),
    ),
    Mutant(
        "say that a number is allowed that is not",
        (Edit(BOUND, "bool(compare(measured, self.allowed))", "True"),),
        Test("tests/checks/test_bound.py::test_state_numbers_and_texts_of_every_check_agree"),
    ),
    Mutant(
        "call times of reading exact",
        (Edit(PLAIN, "min(max(record.sent, since_ns), at_ns)", "at_ns"),),
        Test(AGREEMENT),
    ),
    Mutant(
        "forget how long a processor takes to wake for the event loop",
        (
            Edit(
                READ_LOOP,
                "return self.ready_ns - max(self.longest_wake_ns, self.longest_delay_ns)",
                "return self.woken_ns",
            ),
        ),
        Test(AGREEMENT),
    ),
    Mutant(
        "read an answer once it has ended",
        (Edit(PLAIN, "async for data in response.content.iter_any()",
              "for data in [await response.content.read()]"),),
        Test(AGREEMENT),
    ),
    Mutant(
        "believe counts that do not add up",
        (Edit(TALLY, "self.disagreeing_counts += apart != 0", "pass"),),
        Test("tests/checks/test_token_counts.py::test_counts_that_do_not_add_up_are_suspect"),
    ),
    Mutant(
        "read the last line of an event alone",
        (Edit("loadgen/core/sse.pyx", "and not self.has_data and not self.at_first_line",
              "and not self.at_first_line"),),
        Test("tests/core/test_sse.py::test_event_stream_follows_the_standard"),
    ),
)  # fmt: skip
