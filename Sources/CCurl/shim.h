#ifndef CCURL_SHIM_H
#define CCURL_SHIM_H

// This header precedes those of curl, which declare fd_set. Otherwise Dispatch's module adds another declaration on a
// cold build.
#include <sys/select.h>

#include <curl/curl.h>
#include <sys/socket.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// curl_easy_setopt and similar functions take their last argument as `...`, which Swift cannot pass. Each function
// below fixes its type, and is named after the option.

// libcurl copies fields and short bodies into buffers of its own, and frees them without zeroing. Tokens and keys would
// stay in the heap. These functions free only zeroed memory.
static inline void saltern_curl_free(void *memory) {
    if (memory == NULL) return;
    explicit_bzero(memory, malloc_usable_size(memory));
    free(memory);
}
static inline void *saltern_curl_realloc(void *memory, size_t size) {
    size_t present = memory == NULL ? 0 : malloc_usable_size(memory);
    if (memory != NULL && size <= present && size >= present / 2) return memory;
    void *moved = malloc(size == 0 ? 1 : size);
    if (moved == NULL || memory == NULL) return moved;
    memcpy(moved, memory, size < present ? size : present);
    saltern_curl_free(memory);
    return moved;
}
// If another library of the process has initialised libcurl before, its memory functions stay.
static inline CURLcode saltern_curl_set_up(void) {
    return curl_global_init_mem(
        CURL_GLOBAL_DEFAULT, malloc, saltern_curl_free, saltern_curl_realloc, strdup, calloc);
}

static inline CURLcode saltern_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode saltern_curl_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode saltern_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode saltern_curl_set_fields(CURL *handle, struct curl_slist *fields) {
    return curl_easy_setopt(handle, CURLOPT_HTTPHEADER, fields);
}
static inline CURLcode saltern_curl_set_anchor(CURL *handle, const void *pem, size_t length) {
    struct curl_blob blob = {.data = (void *)pem, .len = length, .flags = CURL_BLOB_COPY};
    return curl_easy_setopt(handle, CURLOPT_CAINFO_BLOB, &blob);
}

typedef size_t (*saltern_curl_write)(char *bytes, size_t size, size_t count, void *owner);
static inline CURLcode saltern_curl_on_body(CURL *handle, saltern_curl_write callback, void *owner) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, callback);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_WRITEDATA, owner) : code;
}
// The first callback supplies the bytes to send. The second returns to an offset, for a connection that ended before
// its use.
typedef int (*saltern_curl_seek)(void *owner, curl_off_t offset, int origin);
static inline CURLcode saltern_curl_on_sending(
    CURL *handle, saltern_curl_write read, saltern_curl_seek seek, void *owner) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_READFUNCTION, read);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_READDATA, owner);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, seek);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_SEEKDATA, owner) : code;
}
static inline int saltern_curl_shorten_buffer(void *size, curl_socket_t socket, curlsocktype purpose) {
    int bytes = (int)(intptr_t)size;
    // If the kernel rejects the size, it only receives more bytes ahead of the reader.
    (void)purpose, (void)setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    return CURL_SOCKOPT_OK;
}
// Sets the number of bytes that the kernel receives ahead of the reader.
static inline CURLcode saltern_curl_set_receive_buffer(CURL *handle, int bytes) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_SOCKOPTFUNCTION, saltern_curl_shorten_buffer);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_SOCKOPTDATA, (void *)(intptr_t)bytes) : code;
}
static inline CURLcode saltern_curl_on_field(CURL *handle, saltern_curl_write callback, void *owner) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, callback);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_HEADERDATA, owner) : code;
}

static inline CURLcode saltern_curl_status(CURL *handle, long *status) {
    return curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, status);
}
typedef CURLcode (*saltern_curl_context)(CURL *handle, void *context, void *owner);
// The callback receives OpenSSL's SSL_CTX. With another TLS library the option is missing, and this fails.
static inline CURLcode saltern_curl_on_context(CURL *handle, saltern_curl_context callback) {
    return curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, callback);
}
// Returns the number of body bytes transferred in both directions.
static inline curl_off_t saltern_curl_moved(CURL *handle) {
    curl_off_t sent = 0, received = 0;
    if (curl_easy_getinfo(handle, CURLINFO_SIZE_UPLOAD_T, &sent) != CURLE_OK) sent = 0;
    if (curl_easy_getinfo(handle, CURLINFO_SIZE_DOWNLOAD_T, &received) != CURLE_OK) received = 0;
    return sent + received;
}
static inline CURLcode saltern_curl_private(CURL *handle, void **owner) {
    return curl_easy_getinfo(handle, CURLINFO_PRIVATE, owner);
}
static inline CURLMcode saltern_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

// The payload of a message is a union.
static inline CURLcode saltern_curl_message_result(const CURLMsg *message) { return message->data.result; }

#endif
