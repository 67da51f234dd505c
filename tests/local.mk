# SPDX-License-Identifier: MIT

# Each topic is one program of its own: the runtime starts once in a process.
SPECIFICATION_TESTS = \
	tests/test_platform \
	tests/test_version \
	tests/test_context \
	tests/test_queue \
	tests/test_buffer \
	tests/test_subbuffer \
	tests/test_svm \
	tests/test_transfer \
	tests/test_transfer_lanes \
	tests/test_map \
	tests/test_image \
	tests/test_image_kernel \
	tests/test_migrate \
	tests/test_program \
	tests/test_kernel \
	tests/test_ndrange \
	tests/test_event \
	tests/test_wait_list \
	tests/test_barrier \
	tests/test_order \
	tests/test_threads \
	tests/test_refcount \
	tests/test_badhandles \
	tests/test_scale \
	tests/test_random \
	tests/test_overlap
# What only Tutti has.
TUTTI_TESTS = \
	tests/test_two_devices \
	tests/test_selection \
	tests/test_statistics \
	tests/test_strict \
	tests/test_batch \
	tests/test_direct \
	tests/test_at_once \
	tests/test_in_call \
	tests/test_beside_call \
	tests/test_addresses \
	tests/test_fresh \
	tests/test_lone \
	tests/test_row \
	tests/test_rows \
	tests/test_stream \
	tests/test_crew \
	tests/test_helpers \
	tests/test_steady \
	tests/test_late_build \
	tests/test_first_launch \
	tests/test_exit \
	tests/test_shared_cache \
	tests/test_beside_kernel \
	tests/test_blocking_write \
	tests/test_dataflow \
	tests/test_callbacks \
	tests/test_launch_fails \
	tests/test_printf_order \
	tests/test_fixed \
	tests/test_independence \
	tests/test_failures \
	tests/test_models \
	tests/test_frames \
	tests/test_svm_device \
	tests/test_late_writes \
	tests/test_lanes \
	tests/test_cores \
	tests/test_chain \
	tests/test_window \
	tests/test_locked_pages \
	tests/test_users_pages \
	tests/test_beside \
	tests/test_append \
	tests/test_append_chance \
	tests/test_append_gpus \
	tests/test_append_transfers \
	tests/test_append_lanes \
	tests/test_large_transfers \
	tests/test_far_ahead \
	tests/test_together \
	tests/test_two_gpus \
	tests/test_rest \
	tests/test_pass \
	tests/test_taken \
	tests/test_natives \
	tests/test_early \
	tests/test_ends \
	tests/test_contexts \
	tests/test_map_behind \
	tests/test_moves \
	tests/test_group_size \
	tests/test_build_beside \
	tests/test_failed_build \
	tests/test_built \
	tests/test_profiled \
	tests/test_one_caller \
	tests/test_functions \
	tests/test_block \
	tests/test_line \
	tests/test_include \
	tests/test_spare \
	tests/test_link \
	tests/test_guess \
	tests/test_policy \
	tests/test_schedulers \
	tests/test_rename \
	tests/test_rename_kernels \
	tests/test_traffic \
	tests/test_memory \
	tests/test_memory_gpus \
	tests/test_home \
	tests/test_staging \
	tests/test_pinned_limit \
	tests/test_kept_storage \
	tests/test_new_memory \
	tests/test_rect_commands \
	tests/test_transfer_ways \
	tests/test_beside_cpu \
	tests/test_collected_beside \
	tests/test_prefetch \
	tests/test_relay \
	tests/test_relay_gpus \
	tests/test_chunks_across \
	tests/test_elsewhere \
	tests/test_left_out \
	tests/test_peers \
	tests/test_peer_choice \
	tests/test_overwrite \
	tests/test_door \
	tests/test_crash
# Those programs again, on other devices; TAP of all of them as one.
VARIANT_TESTS = \
	tests/variant_real_pocl \
	tests/variant_pthread \
	tests/variant_oclgrind \
	tests/variant_staged \
	tests/variant_memory

EXTRA_DIST += $(VARIANT_TESTS) tests/run-variant tests/night tests/valgrind.supp

if HAVE_CHECK
check_PROGRAMS += $(SPECIFICATION_TESTS) $(TUTTI_TESTS)
TESTS += $(SPECIFICATION_TESTS) $(TUTTI_TESTS) $(VARIANT_TESTS)
endif

check_LIBRARIES += tests/libsupport.a
tests_libsupport_a_SOURCES = tests/support.c tests/support.h tests/crash.c tests/crash.h
tests_libsupport_a_CPPFLAGS = $(TEST_CPPFLAGS)

TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
TEST_LIBS = tests/libsupport.a $(CHECK_LIBS) $(OPENCL_LIBS) -ldl

tests_test_platform_SOURCES = tests/test_platform.c
tests_test_platform_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_platform_LDADD = $(TEST_LIBS)

tests_test_version_SOURCES = tests/test_version.c
tests_test_version_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_version_LDADD = $(TEST_LIBS)

tests_test_context_SOURCES = tests/test_context.c
tests_test_context_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_context_LDADD = $(TEST_LIBS)

tests_test_queue_SOURCES = tests/test_queue.c
tests_test_queue_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_queue_LDADD = $(TEST_LIBS)

tests_test_buffer_SOURCES = tests/test_buffer.c
tests_test_buffer_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_buffer_LDADD = $(TEST_LIBS)

tests_test_subbuffer_SOURCES = tests/test_subbuffer.c tests/native.h
tests_test_subbuffer_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_subbuffer_LDADD = $(TEST_LIBS)

tests_test_svm_SOURCES = tests/test_svm.c tests/svm_nodes.h
tests_test_svm_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_svm_LDADD = $(TEST_LIBS)

tests_test_functions_SOURCES = tests/test_functions.c tests/pocl_table.h
tests_test_functions_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_functions_LDADD = $(TEST_LIBS)

tests_test_late_writes_SOURCES = tests/test_late_writes.c tests/pocl_gpu.h tests/pocl_table.h
tests_test_late_writes_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_late_writes_LDADD = $(TEST_LIBS)

tests_test_lanes_SOURCES = tests/test_lanes.c tests/mixing.h tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_lanes_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_lanes_LDADD = $(TEST_LIBS)

tests_test_large_transfers_SOURCES = tests/test_large_transfers.c tests/transfer_lanes.h tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_large_transfers_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_large_transfers_LDADD = $(TEST_LIBS)
tests_test_transfer_lanes_SOURCES = tests/test_transfer_lanes.c tests/transfer_lanes.h tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_transfer_lanes_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_transfer_lanes_LDADD = $(TEST_LIBS)
tests_test_together_SOURCES = tests/test_together.c tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_together_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_together_LDADD = $(TEST_LIBS)

tests_test_rest_SOURCES = tests/test_rest.c tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_rest_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_rest_LDADD = $(TEST_LIBS)
tests_test_two_gpus_SOURCES = tests/test_two_gpus.c tests/frame_stream.h tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_two_gpus_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_two_gpus_LDADD = $(TEST_LIBS)

tests_test_natives_SOURCES = tests/test_natives.c tests/gate.h tests/resident.h
tests_test_natives_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_natives_LDADD = $(TEST_LIBS)

tests_test_taken_SOURCES = tests/test_taken.c tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_taken_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_taken_LDADD = $(TEST_LIBS)

tests_test_pass_SOURCES = tests/test_pass.c tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_pass_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_pass_LDADD = $(TEST_LIBS)

tests_test_append_SOURCES = tests/test_append.c tests/append.h tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_append_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_append_LDADD = $(TEST_LIBS)
tests_test_append_lanes_SOURCES = tests/test_append_lanes.c tests/append.h tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_append_lanes_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_append_lanes_LDADD = $(TEST_LIBS)
tests_test_append_chance_SOURCES = tests/test_append_chance.c tests/append_chance.h tests/append.h tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_append_chance_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_append_chance_LDADD = $(TEST_LIBS)
tests_test_append_gpus_SOURCES = tests/test_append_gpus.c tests/append_chance.h tests/append.h tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_append_gpus_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_append_gpus_LDADD = $(TEST_LIBS)

tests_test_append_transfers_SOURCES = tests/test_append_transfers.c tests/append.h tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_append_transfers_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_append_transfers_LDADD = $(TEST_LIBS)
tests_test_far_ahead_SOURCES = tests/test_far_ahead.c tests/frame_stream.h tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_far_ahead_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_far_ahead_LDADD = $(TEST_LIBS)

tests_test_beside_SOURCES = tests/test_beside.c tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h \
	tests/lives.h
tests_test_beside_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_beside_LDADD = $(TEST_LIBS)

tests_test_early_SOURCES = tests/test_early.c tests/lives.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_early_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_early_LDADD = $(TEST_LIBS)
tests_test_ends_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_ends_LDADD = $(TEST_LIBS)

tests_test_group_size_SOURCES = tests/test_group_size.c tests/pocl_gpu.h tests/pocl_table.h
tests_test_group_size_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_group_size_LDADD = $(TEST_LIBS)

tests_test_built_SOURCES = tests/test_built.c tests/pocl_gpu.h tests/pocl_table.h
tests_test_built_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_built_LDADD = $(TEST_LIBS)

tests_test_failed_build_SOURCES = tests/test_failed_build.c tests/pocl_gpu.h tests/pocl_table.h
tests_test_failed_build_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_failed_build_LDADD = $(TEST_LIBS)

tests_test_build_beside_SOURCES = tests/test_build_beside.c tests/slow_gpu.h tests/pocl_gpu.h \
	tests/pocl_table.h
tests_test_build_beside_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_build_beside_LDADD = $(TEST_LIBS)

tests_test_profiled_SOURCES = tests/test_profiled.c tests/pocl_gpu.h tests/pocl_table.h
tests_test_profiled_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_profiled_LDADD = $(TEST_LIBS)

tests_test_contexts_SOURCES = tests/test_contexts.c tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_contexts_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_contexts_LDADD = $(TEST_LIBS)

tests_test_map_behind_SOURCES = tests/test_map_behind.c tests/slow_gpu.h tests/pocl_gpu.h \
	tests/pocl_table.h tests/traffic.h
tests_test_map_behind_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_map_behind_LDADD = $(TEST_LIBS)

tests_test_moves_SOURCES = tests/test_moves.c tests/slow_gpu.h tests/pocl_gpu.h tests/pocl_table.h \
	tests/traffic.h
tests_test_moves_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_moves_LDADD = $(TEST_LIBS)

tests_test_one_caller_SOURCES = tests/test_one_caller.c tests/pocl_gpu.h tests/pocl_table.h
tests_test_one_caller_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_one_caller_LDADD = $(TEST_LIBS)

tests_test_svm_device_SOURCES = tests/test_svm_device.c tests/pocl_table.h tests/svm_nodes.h
tests_test_svm_device_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_svm_device_LDADD = $(TEST_LIBS)

tests_test_transfer_SOURCES = tests/test_transfer.c
tests_test_transfer_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_transfer_LDADD = $(TEST_LIBS)

tests_test_map_SOURCES = tests/test_map.c tests/task_counts.h
tests_test_map_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_map_LDADD = $(TEST_LIBS)

tests_test_image_SOURCES = tests/test_image.c
tests_test_image_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_image_LDADD = $(TEST_LIBS)

tests_test_image_kernel_SOURCES = tests/test_image_kernel.c
tests_test_image_kernel_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_image_kernel_LDADD = $(TEST_LIBS)

tests_test_migrate_SOURCES = tests/test_migrate.c
tests_test_migrate_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_migrate_LDADD = $(TEST_LIBS)

tests_test_program_SOURCES = tests/test_program.c
tests_test_program_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_program_LDADD = $(TEST_LIBS)

tests_test_kernel_SOURCES = tests/test_kernel.c
tests_test_kernel_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_kernel_LDADD = $(TEST_LIBS)

tests_test_ndrange_SOURCES = tests/test_ndrange.c
tests_test_ndrange_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_ndrange_LDADD = $(TEST_LIBS)

tests_test_event_SOURCES = tests/test_event.c tests/gate.h
tests_test_event_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_event_LDADD = $(TEST_LIBS)

tests_test_wait_list_SOURCES = tests/test_wait_list.c tests/gate.h
tests_test_wait_list_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_wait_list_LDADD = $(TEST_LIBS)

tests_test_barrier_SOURCES = tests/test_barrier.c tests/gate.h
tests_test_barrier_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_barrier_LDADD = $(TEST_LIBS)

tests_test_order_SOURCES = tests/test_order.c
tests_test_order_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_order_LDADD = $(TEST_LIBS)

tests_test_threads_SOURCES = tests/test_threads.c
tests_test_threads_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_threads_LDADD = $(TEST_LIBS)

tests_test_refcount_SOURCES = tests/test_refcount.c
tests_test_refcount_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_refcount_LDADD = $(TEST_LIBS)

tests_test_badhandles_SOURCES = tests/test_badhandles.c
tests_test_badhandles_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_badhandles_LDADD = $(TEST_LIBS)

tests_test_scale_SOURCES = tests/test_scale.c tests/resident.h
tests_test_scale_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_scale_LDADD = $(TEST_LIBS)

tests_test_overlap_SOURCES = tests/test_overlap.c
tests_test_overlap_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_overlap_LDADD = $(TEST_LIBS)

tests_test_random_SOURCES = tests/test_random.c \
	tests/random/commands.c tests/random/commands_image.c \
	tests/random/execute.c tests/random/execute.h \
	tests/random/generate.c tests/random/propose.c \
	tests/random/propose_image.c tests/random/maker.h \
	tests/random/interpret.c tests/random/outcome.h \
	tests/random/order.c tests/random/order.h \
	tests/random/program.c tests/random/program.h \
	tests/random/shrink.c tests/random/shrink.h
tests_test_random_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_random_LDADD = $(TEST_LIBS)

tests_test_two_devices_SOURCES = tests/test_two_devices.c tests/task_counts.h tests/traffic.h
tests_test_two_devices_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_two_devices_LDADD = $(TEST_LIBS)

tests_test_selection_SOURCES = tests/test_selection.c tests/task_counts.h
tests_test_selection_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_selection_LDADD = $(TEST_LIBS)

tests_test_statistics_SOURCES = tests/test_statistics.c
tests_test_statistics_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_statistics_LDADD = $(TEST_LIBS)

tests_test_strict_SOURCES = tests/test_strict.c tests/native.h
tests_test_strict_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_strict_LDADD = $(TEST_LIBS)

tests_test_batch_SOURCES = tests/test_batch.c
tests_test_batch_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_batch_LDADD = $(TEST_LIBS)

tests_test_direct_SOURCES = tests/test_direct.c
tests_test_direct_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_direct_LDADD = $(TEST_LIBS)

tests_test_lone_SOURCES = tests/test_lone.c tests/task_counts.h
tests_test_lone_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_lone_LDADD = $(TEST_LIBS)
tests_test_row_SOURCES = tests/test_row.c tests/streams.c tests/streams.h tests/native.h tests/task_counts.h
tests_test_row_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_row_LDADD = $(TEST_LIBS)
tests_test_rows_SOURCES = tests/test_rows.c
tests_test_rows_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_rows_LDADD = $(TEST_LIBS)
tests_test_chain_SOURCES = tests/test_chain.c tests/mixing.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_chain_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_chain_LDADD = $(TEST_LIBS)

tests_test_window_SOURCES = tests/test_window.c tests/pocl_gpu.h tests/pocl_table.h
tests_test_window_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_window_LDADD = $(TEST_LIBS)
tests_test_users_pages_SOURCES = tests/test_users_pages.c tests/pocl_gpu.h tests/pocl_table.h tests/restless.h
tests_test_users_pages_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_users_pages_LDADD = $(TEST_LIBS)

tests_test_locked_pages_SOURCES = tests/test_locked_pages.c tests/pocl_gpu.h tests/pocl_table.h
tests_test_locked_pages_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_locked_pages_LDADD = $(TEST_LIBS)
tests_test_cores_SOURCES = tests/test_cores.c tests/mixing.h
tests_test_cores_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_cores_LDADD = $(TEST_LIBS)
tests_test_stream_SOURCES = tests/test_stream.c tests/streams.c tests/streams.h tests/native.h tests/task_counts.h
tests_test_stream_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_stream_LDADD = $(TEST_LIBS)
tests_test_helpers_SOURCES = tests/test_helpers.c
tests_test_helpers_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_helpers_LDADD = $(TEST_LIBS)
tests_test_crew_SOURCES = tests/test_crew.c tests/streams.c tests/streams.h tests/native.h tests/task_counts.h
tests_test_crew_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_crew_LDADD = $(TEST_LIBS)

tests_test_steady_SOURCES = tests/test_steady.c
tests_test_steady_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_steady_LDADD = $(TEST_LIBS)

tests_test_late_build_SOURCES = tests/test_late_build.c tests/task_counts.h
tests_test_late_build_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_late_build_LDADD = $(TEST_LIBS)
tests_test_first_launch_SOURCES = tests/test_first_launch.c tests/task_counts.h
tests_test_first_launch_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_first_launch_LDADD = $(TEST_LIBS)

tests_test_exit_SOURCES = tests/test_exit.c
tests_test_exit_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_exit_LDADD = $(TEST_LIBS)

tests_test_fresh_SOURCES = tests/test_fresh.c
tests_test_fresh_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_fresh_LDADD = $(TEST_LIBS)

tests_test_beside_kernel_SOURCES = tests/test_beside_kernel.c tests/native.h
tests_test_beside_kernel_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_beside_kernel_LDADD = $(TEST_LIBS)

tests_test_blocking_write_SOURCES = tests/test_blocking_write.c tests/native.h
tests_test_blocking_write_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_blocking_write_LDADD = $(TEST_LIBS)

tests_test_independence_SOURCES = tests/test_independence.c tests/native.h
tests_test_independence_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_independence_LDADD = $(TEST_LIBS)

tests_test_fixed_SOURCES = tests/test_fixed.c tests/native.h
tests_test_fixed_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_fixed_LDADD = $(TEST_LIBS)

tests_test_printf_order_SOURCES = tests/test_printf_order.c tests/native.h
tests_test_printf_order_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_printf_order_LDADD = $(TEST_LIBS)

tests_test_launch_fails_SOURCES = tests/test_launch_fails.c tests/pocl_gpu.h tests/pocl_table.h
tests_test_launch_fails_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_launch_fails_LDADD = $(TEST_LIBS)

tests_test_callbacks_SOURCES = tests/test_callbacks.c tests/gate.h
tests_test_callbacks_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_callbacks_LDADD = $(TEST_LIBS)

tests_test_dataflow_SOURCES = tests/test_dataflow.c tests/native.h tests/task_counts.h
tests_test_dataflow_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_dataflow_LDADD = $(TEST_LIBS)

tests_test_failures_SOURCES = tests/test_failures.c tests/refusal.h
tests_test_failures_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_failures_LDADD = $(TEST_LIBS)

tests_test_models_SOURCES = tests/test_models.c
tests_test_models_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_models_LDADD = $(TEST_LIBS)

tests_test_schedulers_SOURCES = tests/test_schedulers.c
tests_test_schedulers_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_schedulers_LDADD = $(TEST_LIBS)

tests_test_frames_SOURCES = tests/test_frames.c tests/traffic.h
tests_test_frames_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_frames_LDADD = $(TEST_LIBS)

# The decisions are compiled into the test: they need nothing else of the driver.
tests_test_line_SOURCES = tests/test_line.c
tests_test_line_CPPFLAGS = $(TEST_CPPFLAGS) -DCL_TARGET_OPENCL_VERSION=300 \
	-I$(top_srcdir)/src -I$(top_srcdir)/icd $(STARPU_CFLAGS)
tests_test_line_LDADD = $(TEST_LIBS) $(STARPU_LIBS)
tests_test_block_SOURCES = tests/test_block.c
tests_test_block_CPPFLAGS = $(tests_test_line_CPPFLAGS)
tests_test_block_LDADD = $(TEST_LIBS)
tests_test_include_SOURCES = tests/test_include.c
tests_test_include_CPPFLAGS = $(tests_test_line_CPPFLAGS)
tests_test_include_LDADD = $(TEST_LIBS)
tests_test_spare_SOURCES = tests/test_spare.c tests/task_counts.h
tests_test_spare_CPPFLAGS = $(tests_test_line_CPPFLAGS)
tests_test_spare_LDADD = $(TEST_LIBS)
tests_test_link_SOURCES = tests/test_link.c
tests_test_link_CPPFLAGS = $(tests_test_line_CPPFLAGS)
tests_test_link_LDADD = $(tests_test_line_LDADD)
tests_test_guess_SOURCES = tests/test_guess.c src/sched/first_launch.c src/sched/policy_task.c src/memory/history.c
tests_test_guess_CPPFLAGS = $(tests_test_line_CPPFLAGS)
tests_test_guess_LDADD = $(tests_test_line_LDADD) -lm
tests_test_policy_SOURCES = tests/test_policy.c
tests_test_policy_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_policy_LDADD = $(TEST_LIBS)

tests_test_overwrite_SOURCES = tests/test_overwrite.c
tests_test_overwrite_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_overwrite_LDADD = $(TEST_LIBS)

tests_test_rename_kernels_SOURCES = tests/test_rename_kernels.c
tests_test_rename_kernels_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_rename_kernels_LDADD = $(TEST_LIBS)

tests_test_rename_SOURCES = tests/test_rename.c
tests_test_rename_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_rename_LDADD = $(TEST_LIBS)

tests_test_traffic_SOURCES = tests/test_traffic.c tests/traffic.h
tests_test_traffic_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_traffic_LDADD = $(TEST_LIBS)

tests_test_memory_SOURCES = tests/test_memory.c tests/full_memory.h tests/traffic.h tests/refusal.h
tests_test_memory_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_memory_LDADD = $(TEST_LIBS)
tests_test_memory_gpus_SOURCES = tests/test_memory_gpus.c tests/full_memory.h tests/traffic.h \
	tests/refusal.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_memory_gpus_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_memory_gpus_LDADD = $(TEST_LIBS)

tests_test_home_SOURCES = tests/test_home.c tests/page_locked.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_home_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_home_LDADD = $(TEST_LIBS)

tests_test_staging_SOURCES = tests/test_staging.c tests/driver_moves.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_staging_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_staging_LDADD = $(TEST_LIBS)

tests_test_prefetch_SOURCES = tests/test_prefetch.c tests/driver_moves.h tests/slow_gpu.h \
	tests/pocl_gpu.h tests/pocl_table.h
tests_test_prefetch_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_prefetch_LDADD = $(TEST_LIBS)

tests_test_chunks_across_SOURCES = tests/test_chunks_across.c tests/driver_moves.h \
	tests/pocl_gpu.h tests/pocl_table.h
tests_test_chunks_across_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_chunks_across_LDADD = $(TEST_LIBS)

tests_test_pinned_limit_SOURCES = tests/test_pinned_limit.c tests/pocl_gpu.h tests/pocl_table.h tests/restless.h
tests_test_pinned_limit_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_pinned_limit_LDADD = $(TEST_LIBS)

tests_test_kept_storage_SOURCES = tests/test_kept_storage.c tests/pocl_gpu.h tests/pocl_table.h tests/restless.h
tests_test_kept_storage_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_kept_storage_LDADD = $(TEST_LIBS)

tests_test_collected_beside_SOURCES = tests/test_collected_beside.c tests/slow_gpu.h tests/pocl_gpu.h \
	tests/pocl_table.h
tests_test_collected_beside_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_collected_beside_LDADD = $(TEST_LIBS)

tests_test_new_memory_SOURCES = tests/test_new_memory.c tests/pocl_gpu.h tests/pocl_table.h
tests_test_new_memory_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_new_memory_LDADD = $(TEST_LIBS)

tests_test_rect_commands_SOURCES = tests/test_rect_commands.c tests/driver_moves.h \
	tests/pocl_gpu.h tests/pocl_table.h
tests_test_rect_commands_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_rect_commands_LDADD = $(TEST_LIBS)

tests_test_transfer_ways_SOURCES = tests/test_transfer_ways.c tests/driver_moves.h \
	tests/pocl_gpu.h tests/pocl_table.h
tests_test_transfer_ways_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_transfer_ways_LDADD = $(TEST_LIBS)

tests_test_beside_cpu_SOURCES = tests/test_beside_cpu.c tests/driver_moves.h tests/traffic.h \
	tests/pocl_gpu.h tests/pocl_table.h
tests_test_beside_cpu_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_beside_cpu_LDADD = $(TEST_LIBS)

tests_test_relay_SOURCES = tests/test_relay.c tests/across.h tests/traffic.h
tests_test_relay_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_relay_LDADD = $(TEST_LIBS)

tests_test_left_out_SOURCES = tests/test_left_out.c tests/pocl_gpu.h tests/pocl_table.h \
	tests/traffic.h
tests_test_left_out_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_left_out_LDADD = $(TEST_LIBS)

tests_test_elsewhere_SOURCES = tests/test_elsewhere.c tests/task_counts.h tests/pocl_gpu.h \
	tests/pocl_table.h tests/traffic.h
tests_test_elsewhere_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_elsewhere_LDADD = $(TEST_LIBS)

tests_test_relay_gpus_SOURCES = tests/test_relay_gpus.c tests/across.h tests/page_locked.h \
	tests/pocl_gpu.h tests/pocl_table.h tests/traffic.h
tests_test_relay_gpus_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_relay_gpus_LDADD = $(TEST_LIBS)

tests_test_peers_SOURCES = tests/test_peers.c tests/across.h tests/traffic.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_peers_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_peers_LDADD = $(TEST_LIBS)
tests_test_peer_choice_SOURCES = tests/test_peer_choice.c tests/traffic.h tests/pocl_gpu.h tests/pocl_table.h
tests_test_peer_choice_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_peer_choice_LDADD = $(TEST_LIBS)

tests_test_in_call_SOURCES = tests/test_in_call.c tests/gate.h tests/task_counts.h
tests_test_in_call_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_in_call_LDADD = $(TEST_LIBS)

tests_test_beside_call_SOURCES = tests/test_beside_call.c tests/task_counts.h
tests_test_beside_call_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_beside_call_LDADD = $(TEST_LIBS)
tests_test_at_once_SOURCES = tests/test_at_once.c tests/task_counts.h
tests_test_at_once_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_at_once_LDADD = $(TEST_LIBS)

tests_test_addresses_SOURCES = tests/test_addresses.c tests/pocl_table.h
tests_test_addresses_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_addresses_LDADD = $(TEST_LIBS)

# Its own remove() is there for the drivers that it loads.
tests_test_shared_cache_SOURCES = tests/test_shared_cache.c tests/task_counts.h
tests_test_shared_cache_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_shared_cache_LDFLAGS = -export-dynamic
tests_test_shared_cache_LDADD = $(TEST_LIBS)

tests_test_door_SOURCES = tests/test_door.c
tests_test_door_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_door_LDADD = $(TEST_LIBS)

tests_test_crash_SOURCES = tests/test_crash.c
tests_test_crash_CPPFLAGS = $(TEST_CPPFLAGS)
tests_test_crash_LDADD = $(TEST_LIBS)

# The vendors directory of the build holds the fresh driver and the machine's other ones. Two devices
# even where there is only PoCL, and programs built for both, however little they do. StarPU and PoCL
# keep what they learn in the build tree. Of libraries that are built without it, ThreadSanitizer sees
# some accesses and not the locks around them; and where a thread's new variables lie behind other
# memory, that of clang 14 takes this for their size and may end the process.
AM_TESTS_ENVIRONMENT += \
	TUTTI_TEST_PLATFORM=$${TUTTI_TEST_PLATFORM-Tutti}; \
	TUTTI_TEST_LIBRARY='$(abs_top_builddir)/.libs/libtutti.so'; \
	TUTTI_TEST_PROGRAMS='$(abs_top_builddir)/tests'; \
	TUTTI_TEST_VENDORS='$(abs_top_builddir)/vendors'; \
	OCL_ICD_VENDORS=$${OCL_ICD_VENDORS-'$(abs_top_builddir)/vendors'}; \
	POCL_DEVICES=$${POCL_DEVICES-'basic basic'}; \
	TUTTI_BUILDS=$${TUTTI_BUILDS-early}; \
	STARPU_HOME='$(abs_top_builddir)/tests/home'; \
	XDG_CACHE_HOME='$(abs_top_builddir)/tests/home'; \
	TSAN_OPTIONS=$${TSAN_OPTIONS-ignore_noninstrumented_modules=1:intercept_tls_get_addr=0}; \
	$(MKDIR_P) '$(abs_top_builddir)/tests/home'; \
	export TUTTI_TEST_PLATFORM TUTTI_TEST_LIBRARY TUTTI_TEST_PROGRAMS TUTTI_TEST_VENDORS \
	OCL_ICD_VENDORS POCL_DEVICES TUTTI_BUILDS STARPU_HOME XDG_CACHE_HOME TSAN_OPTIONS;

# A test that hangs ends, and counts as failed.
LOG_COMPILER = timeout
AM_LOG_FLAGS = --kill-after=10 900

clean-local: clean-test-home
.PHONY: clean-test-home
clean-test-home:
	-rm -rf tests/home
