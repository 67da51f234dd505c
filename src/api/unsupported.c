/* SPDX-License-Identifier: MIT */
/*
 * Entry points of optional parts that the virtual device does not have, as it says in its queries.
 * Each refuses with what its specification names for such a device.
 */
#include "entry_points.h"
#include "object.h"

/* Arguments go unused here by design. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static void *no_object(cl_int *errcode_ret, cl_int error) {
    if (errcode_ret)
        *errcode_ret = error;
    return NULL;
}

/* Every function that makes an object from a context. */
#define NO_OBJECT(type, name, ...)                                                                 \
    CL_API_ENTRY type CL_API_CALL tutti_##name(cl_context context, __VA_ARGS__,                    \
                                               cl_int *errcode_ret) {                              \
        return no_object(errcode_ret,                                                              \
                         TUTTI_IS_CONTEXT(context) ? CL_INVALID_OPERATION : CL_INVALID_CONTEXT);   \
    }

/* Every function that enqueues a command. */
#define NO_COMMAND(name, ...)                                                                      \
    CL_API_ENTRY cl_int CL_API_CALL tutti_##name(cl_command_queue queue, __VA_ARGS__) {            \
        return TUTTI_IS_QUEUE(queue) ? CL_INVALID_OPERATION : CL_INVALID_COMMAND_QUEUE;            \
    }

#define WAIT_LIST cl_uint num_events, const cl_event *event_wait_list, cl_event *event

cl_int CL_API_CALL tutti_refuse(void) { return CL_INVALID_OPERATION; }

void *CL_API_CALL tutti_refuse_object(void) { return NULL; }

/* OpenGL (cl_khr_gl_sharing): a context of ours is never made from a GL context. */
NO_OBJECT(cl_mem, clCreateFromGLBuffer, cl_mem_flags flags, cl_GLuint object)
NO_OBJECT(cl_mem, clCreateFromGLTexture, cl_mem_flags flags, cl_GLenum target, cl_GLint level,
          cl_GLuint texture)
NO_OBJECT(cl_mem, clCreateFromGLTexture2D, cl_mem_flags flags, cl_GLenum target, cl_GLint level,
          cl_GLuint texture)
NO_OBJECT(cl_mem, clCreateFromGLTexture3D, cl_mem_flags flags, cl_GLenum target, cl_GLint level,
          cl_GLuint texture)
NO_OBJECT(cl_mem, clCreateFromGLRenderbuffer, cl_mem_flags flags, cl_GLuint renderbuffer)
NO_OBJECT(cl_event, clCreateEventFromGLsyncKHR, cl_GLsync sync)
NO_COMMAND(clEnqueueAcquireGLObjects, cl_uint count, const cl_mem *mems, WAIT_LIST)
NO_COMMAND(clEnqueueReleaseGLObjects, cl_uint count, const cl_mem *mems, WAIT_LIST)

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetGLObjectInfo(cl_mem memobj, cl_gl_object_type *type,
                                                        cl_GLuint *name) {
    return TUTTI_IS_MEM(memobj) ? CL_INVALID_GL_OBJECT : CL_INVALID_MEM_OBJECT;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetGLTextureInfo(cl_mem memobj,
                                                         cl_gl_texture_info param_name,
                                                         size_t param_value_size, void *param_value,
                                                         size_t *param_value_size_ret) {
    return TUTTI_IS_MEM(memobj) ? CL_INVALID_GL_OBJECT : CL_INVALID_MEM_OBJECT;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetGLContextInfoKHR(const cl_context_properties *properties,
                                                            cl_gl_context_info param_name,
                                                            size_t param_value_size,
                                                            void *param_value,
                                                            size_t *param_value_size_ret) {
    return CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR;
}

/* EGL (cl_khr_egl_image, cl_khr_egl_event). */
NO_OBJECT(cl_mem, clCreateFromEGLImageKHR, CLeglDisplayKHR display, CLeglImageKHR image,
          cl_mem_flags flags, const cl_egl_image_properties_khr *properties)
NO_OBJECT(cl_event, clCreateEventFromEGLSyncKHR, CLeglSyncKHR sync, CLeglDisplayKHR display)
NO_COMMAND(clEnqueueAcquireEGLObjectsKHR, cl_uint count, const cl_mem *mems, WAIT_LIST)
NO_COMMAND(clEnqueueReleaseEGLObjectsKHR, cl_uint count, const cl_mem *mems, WAIT_LIST)

/* Pipes (OpenCL 3.0, 5.4: optional). */
NO_OBJECT(cl_mem, clCreatePipe, cl_mem_flags flags, cl_uint packet_size, cl_uint max_packets,
          const cl_pipe_properties *properties)

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetPipeInfo(cl_mem pipe, cl_pipe_info param_name,
                                                    size_t param_value_size, void *param_value,
                                                    size_t *param_value_size_ret) {
    return CL_INVALID_MEM_OBJECT;
}
