/// The functions of the server that the engine uses.
protocol SyncServer: Sendable {
    /// Fetches a page of changes.
    /// - Parameter isMetaOnly: Omits titles and bodies.
    /// - Throws: ``APIError/unexpectedReply`` for more changes than requested.
    func changes(
        since cursor: String?, limit: Int, isMetaOnly: Bool, reportsDeletions: Bool
    ) async throws(APIError) -> ChangePage
    /// Fetches one item; nil when there is none.
    /// - Throws: ``APIError/unexpectedReply`` for another item.
    func item(_ id: ItemID) async throws(APIError) -> ItemState?
    /// Sends operations, all or none.
    /// - Parameter head: The number of the latest known entry of a shared vault's log.
    /// - Returns: Their revisions, in order.
    /// - Throws: ``APIError/unexpectedReply`` for revisions of other items, and for impossible revisions.
    func write(_ operations: [BatchOperation], head: Int64?) async throws(APIError) -> [Revision]
}

/// The server's API in the form that the engine uses.
struct LiveSyncServer: SyncServer {
    private let api: SalternAPI
    private let owner: ItemOwner
    private let token: Token
    private let retries: Retries
    var smallestBatchBytes = SyncLimits().smallestBatchBytes

    init(_ api: SalternAPI, _ owner: ItemOwner = .account, token: Token, retries: Retries) {
        self.api = api.of(owner)
        self.owner = owner
        self.token = token
        self.retries = retries
    }

    /// The limit of a cursor, which is stored. Cursors of this server have less than 100 bytes.
    private static let cursorByteLimit = 4 << 10

    func changes(
        since cursor: String?, limit: Int, isMetaOnly: Bool, reportsDeletions: Bool
    ) async throws(APIError) -> ChangePage {
        // A page that did not arrive is not requested unchanged: the engine requests a shorter one.
        let page = try await retries(unless: { limit > 1 && $0.isOfSlowLine }) { () throws(APIError) in
            try await api.listChanges(
                since: cursor, isMetaOnly: isMetaOnly, limit: limit, reportsDeletions: reportsDeletions, token)
        }
        guard page.changes.count <= limit, page.cursor.utf8.count <= Self.cursorByteLimit else {
            throw .unexpectedReply
        }
        return page
    }

    func item(_ id: ItemID) async throws(APIError) -> ItemState? {
        let state: ItemState
        do throws(APIError) {
            state = try await retries({ () throws(APIError) in try await api.getItem(id, token) })
        } catch .problem(let problem) where problem.code == .notFound {
            return nil
        }
        guard state.id == id else { throw .unexpectedReply }
        return state
    }

    func write(_ operations: [BatchOperation], head: Int64?) async throws(APIError) -> [Revision] {
        // The server accepts equal bytes again, so a retry after a lost reply is safe.
        let isLong = operations.count > 1 && operations.reduce(0) { $0 + $1.sealedByteCount } > smallestBatchBytes
        // A long batch that failed is not repeated unchanged: the engine divides it into smaller ones.
        let reply = try await retries(unless: { isLong && $0.isAboutPace }) { () throws(APIError) in
            try await api.of(owner, head: head).writeBatch(operations, token)
        }
        guard reply.results.count == operations.count,
            zip(operations, reply.results).allSatisfy({ $0.canHave($1) })
        else { throw .unexpectedReply }
        return reply.results.map(\.revision)
    }
}

/// Fetches pages of changes, in the sizes that the connection allows.
struct PageFetcher {
    private let store: Store
    private let server: any SyncServer
    private let limits: SyncLimits

    init(_ store: Store, _ server: any SyncServer, _ limits: SyncLimits) {
        self.store = store
        self.server = server
        self.limits = limits
    }

    /// Returns the next page, without the content of chunks, which only readers of an attachment fetch.
    ///
    /// A page that does not arrive is requested again with fewer changes, also after the end of the process.
    /// - Parameter isLong: True if many changes are expected: in the first listing, and after a page with `more`.
    func page(since cursor: String?, reportsDeletions: Bool, isLong: Bool) async throws -> ChangePage {
        var slowdowns = 0
        while true {
            let former = try store.number(.pageChanges)
            let limit = min(limits.page, former.map { max(Int(clamping: $0), 1) } ?? .max)
            if isLong, limit > 1 { try limitPages(to: limit / 4) }
            switch await fetchPage(since: cursor, limit: limit, reportsDeletions: reportsDeletions) {
            case .success(let page):
                // The connection may be faster now.
                let next = limit * 2 < limits.page ? limit * 2 : nil
                if try store.number(.pageChanges) != next.map({ Int64($0) }) { try limitPages(to: next) }
                return page
            case .failure(let error) where error.isOfSlowLine && limit > 1 && slowdowns < limits.slowdowns:
                slowdowns += 1
                try limitPages(to: limit / 4)
            case .failure(let error):
                if !error.isOfSlowLine, !error.isCancelled { try limitPages(to: former.map { Int(clamping: $0) }) }
                throw error
            }
        }
    }

    /// Stores the number of changes in a page, at least 1; nil for the usual number.
    private func limitPages(to count: Int?) throws {
        try store.set(.pageChanges, count.map { Array(String(max($0, 1)).utf8) })
    }

    /// If the store has chunks, headers are requested first. A run of chunks is used directly. A run of other items is
    /// requested again with its content.
    private func fetchPage(
        since cursor: String?, limit: Int, reportsDeletions: Bool
    ) async -> Result<ChangePage, APIError> {
        let hasChunks: Bool
        do { hasChunks = try store.hasChunks() } catch { hasChunks = false }
        return await Result.of { () throws(APIError) in
            var isMetaOnly = hasChunks
            var limit = limit
            while true {
                let page = try await server.changes(
                    since: cursor, limit: limit, isMetaOnly: isMetaOnly, reportsDeletions: reportsDeletions)
                guard isMetaOnly else { return page }
                let heads = page.changes.prefix { $0.isWholeAsHead }.count
                if heads == page.changes.count { return page }
                isMetaOnly = heads > 0
                limit = heads > 0 ? heads : page.changes.prefix { !$0.isChunk }.count
            }
        }
    }
}

extension BatchOperation {
    /// The approximate length in a request, in bytes.
    var sealedByteCount: Int {
        guard case .put(_, let content, _) = self else { return 256 }
        return 256 + (content.body.bytes.count + (content.title?.bytes.count ?? 0)) * 4 / 3
    }

    /// Returns true when the result is possible for this operation. Revisions only grow; equal bytes keep their
    /// revision.
    fileprivate func canHave(_ result: BatchResult.Entry) -> Bool {
        switch self {
        case .put(let id, _, let base):
            result.id == id && result.revision.number >= max(base?.number ?? 0, 1)
        case .delete(let id, let base):
            result.id == id && result.revision.number > (base?.number ?? 0)
        }
    }
}

extension ItemState {
    /// True when the header alone is sufficient.
    fileprivate var isWholeAsHead: Bool { deleted || isChunk }
}
