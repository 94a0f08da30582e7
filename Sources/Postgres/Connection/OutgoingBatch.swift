/// The requests of one connection that were sent since its last sync, and the members of a group still to be sent.
///
/// Requests that only read share a batch, and so do the members of a group. Every other request has a batch of its own.
///
/// Pure: ``PostgresConnection`` sends the statements and the commands around them.
struct OutgoingBatch {
    enum Kind {
        /// Nothing was sent since the last sync.
        case none
        case readOnly, single
        /// A request between BEGIN and COMMIT, because the server does not run a batch as a transaction.
        case block
        case group
    }

    private(set) var kind = Kind.none
    private var missingMembers = 0
    private var isFirst = false

    /// Makes the next `count` requests members of a group.
    mutating func expectGroup(_ count: Int) { missingMembers = count }

    /// True if members of the group are still to be sent.
    var isIncomplete: Bool { missingMembers > 0 }

    /// Returns the kind of batch that the next request needs.
    /// - Parameter isBlock: True if the request needs BEGIN and COMMIT outside of a group.
    func kindOfNext(isReadOnly: Bool, isBlock: Bool) -> Kind {
        if isIncomplete { return .group }
        if isBlock { return .block }
        return isReadOnly ? .readOnly : .single
    }

    /// Returns true if a request may follow without a sync.
    func admits(_ next: Kind) -> Bool {
        switch kind {
        case .none: true
        case .readOnly, .group: next == kind
        case .single, .block: false
        }
    }

    /// Adds a request. The batch must be empty or admit it.
    mutating func add(_ next: Kind) {
        kind = next
        isFirst = true
        if next == .group { missingMembers -= 1 }
    }

    /// Adds a command of the connection itself.
    mutating func addCommand() { kind = .single }

    /// Returns true for the first statement of each request.
    mutating func takeFirst() -> Bool {
        defer { isFirst = false }
        return isFirst
    }

    /// Handles a sync.
    mutating func end() { kind = .none }
}
