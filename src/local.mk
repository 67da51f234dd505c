# SPDX-License-Identifier: MIT
libtutti_la_SOURCES += \
	src/brief_lock.h \
	src/clock.h \
	src/context.h \
	src/directory.c src/directory.h \
	src/env.c src/env.def src/env.h \
	src/log.c src/log.h \
	src/object.c src/object.h \
	src/recycler.c src/recycler.h \
	src/signals.h \
	src/api/buffer.c \
	src/api/check.c src/api/check.h \
	src/api/context.c \
	src/api/device.c \
	src/api/enqueue_buffer.c \
	src/api/enqueue_image.c \
	src/api/enqueue_kernel.c \
	src/api/enqueue_map.c src/api/enqueue_map.h \
	src/api/event.c \
	src/api/image.c \
	src/api/kernel.c \
	src/api/kernel_info.c \
	src/api/platform.c \
	src/api/program.c \
	src/api/program_build.c \
	src/api/queue.c \
	src/api/sampler.c \
	src/api/svm.c \
	src/api/traffic.c src/api/traffic.h \
	src/api/unsupported.c \
	src/memory/access.c src/memory/access.h \
	src/memory/acquisition.c src/memory/acquisition.h \
	src/memory/block.c src/memory/block.h \
	src/memory/kept_home.c src/memory/kept_home.h \
	src/memory/carry.c src/memory/carry.h \
	src/memory/coherence.c src/memory/coherence.h \
	src/memory/color.c src/memory/color.h \
	src/memory/device_copy.c src/memory/device_copy.h \
	src/memory/history.c src/memory/history.h \
	src/memory/hop.c src/memory/hop.h \
	src/memory/image.c src/memory/image.h \
	src/memory/interface.c \
	src/memory/locked_pages.c src/memory/locked_pages.h \
	src/memory/mem.c src/memory/mem.h \
	src/memory/page_watch.c src/memory/page_watch.h \
	src/memory/peer_trial.c src/memory/peer_trial.h \
	src/memory/peers.c src/memory/peers.h \
	src/memory/pinned.c src/memory/pinned.h \
	src/memory/region.c src/memory/region.h \
	src/memory/relay.c src/memory/relay.h \
	src/memory/room.c src/memory/room.h \
	src/memory/staging.c src/memory/staging.h \
	src/memory/stay.c src/memory/stay.h \
	src/memory/storage.c src/memory/storage.h \
	src/memory/stream.c src/memory/stream.h \
	src/memory/svm.c src/memory/svm.h \
	src/memory/svm_home.c src/memory/svm_home.h \
	src/memory/transfer_path.c src/memory/transfer_path.h \
	src/memory/version.c src/memory/version.h \
	src/memory/view.c src/memory/view.h \
	src/memory/window.c src/memory/window.h \
	src/sched/batch.c src/sched/batch.h \
	src/sched/batch_users.c src/sched/batch_users.h \
	src/sched/blocking_write.c src/sched/blocking_write.h \
	src/sched/command.c src/sched/command.h \
	src/sched/copy_task.c src/sched/copy_task.h \
	src/sched/crew.c src/sched/crew.h \
	src/sched/device_task.c src/sched/device_task.h \
	src/sched/elsewhere.c src/sched/elsewhere.h \
	src/sched/direct.c src/sched/direct.h \
	src/sched/ahead.c src/sched/ahead.h \
	src/sched/append.c src/sched/append.h \
	src/sched/direct_end.c src/sched/direct_end.h \
	src/sched/execution.c src/sched/execution.h \
	src/sched/first_launch.c src/sched/first_launch.h \
	src/sched/idle.c src/sched/idle.h \
	src/sched/environment.c src/sched/environment.h \
	src/sched/event.c src/sched/event.h \
	src/sched/graph.c src/sched/graph.h \
	src/sched/hold.c src/sched/hold.h \
	src/sched/invocation.c src/sched/invocation.h \
	src/sched/at_once.c src/sched/at_once.h \
	src/sched/lanes.c src/sched/lanes.h \
	src/sched/launch.c src/sched/launch.h \
	src/sched/link.c src/sched/link.h \
	src/sched/model.c src/sched/model.h \
	src/sched/model_store.c src/sched/model_store.h \
	src/sched/performance_files.c src/sched/performance_files.h \
	src/sched/policy.c src/sched/policy.h \
	src/sched/policy_choose.c src/sched/policy_choose.h \
	src/sched/policy_line.c src/sched/policy_line.h \
	src/sched/policy_select.c \
	src/sched/policy_task.c src/sched/policy_task.h \
	src/sched/pool.c src/sched/pool.h \
	src/sched/queue.c src/sched/queue.h \
	src/sched/recent.c src/sched/recent.h \
	src/sched/row.c src/sched/row.h \
	src/sched/runtime.c src/sched/runtime.h \
	src/sched/statistics.c src/sched/statistics.h \
	src/sched/straight.c src/sched/straight.h \
	src/sched/transfer.c src/sched/transfer.h \
	src/sched/transfer_command.c src/sched/transfer_command.h \
	src/sched/transfer_many.c \
	src/sched/transfer_direct.c \
	src/sched/transfer_map.c \
	src/sched/transfer_within.c \
	src/sched/wait_list.c src/sched/wait_list.h \
	src/virtual_device/argument_info.c src/virtual_device/argument_info.h \
	src/virtual_device/binary.c src/virtual_device/binary.h \
	src/virtual_device/branches.c src/virtual_device/branches.h \
	src/virtual_device/build.c src/virtual_device/build.h \
	src/virtual_device/build_device.c src/virtual_device/build_device.h \
	src/virtual_device/built.c src/virtual_device/built.h \
	src/virtual_device/device.h \
	src/virtual_device/device_info.c src/virtual_device/device_info.h \
	src/virtual_device/discovery.c \
	src/virtual_device/driver.c src/virtual_device/driver.h \
	src/virtual_device/function.c \
	src/virtual_device/given.c src/virtual_device/given.h \
	src/virtual_device/image.c src/virtual_device/image.h \
	src/virtual_device/include.c src/virtual_device/include.h \
	src/virtual_device/kernel.c src/virtual_device/kernel.h \
	src/virtual_device/kernel_arguments.c src/virtual_device/kernel_create.h \
	src/virtual_device/kernel_text.c src/virtual_device/kernel_text.h \
	src/virtual_device/late_build.c src/virtual_device/late_build.h \
	src/virtual_device/merged.c src/virtual_device/merged.h \
	src/virtual_device/overwrite.c src/virtual_device/overwrite.h \
	src/virtual_device/pocl.c src/virtual_device/pocl.h \
	src/virtual_device/program.c src/virtual_device/program.h \
	src/virtual_device/program_info.c \
	src/virtual_device/prologue.c \
	src/virtual_device/sampler.c src/virtual_device/sampler.h \
	src/virtual_device/selection.c src/virtual_device/selection.h \
	src/virtual_device/signature.c \
	src/virtual_device/source.c src/virtual_device/source.h \
	src/virtual_device/free_memory.c src/virtual_device/free_memory.h \
	src/virtual_device/uuid.c src/virtual_device/uuid.h \
	src/virtual_device/vendor.c src/virtual_device/vendor.h
