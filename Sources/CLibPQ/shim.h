#include <libpq-fe.h>

// libpq 17 can queue a sync without a send() of its own; with an older one each sync is written at once.
static inline int saltern_queue_pipeline_sync(PGconn *connection) {
#ifdef LIBPQ_HAS_SEND_PIPELINE_SYNC
    return PQsendPipelineSync(connection);
#else
    return PQpipelineSync(connection);
#endif
}
