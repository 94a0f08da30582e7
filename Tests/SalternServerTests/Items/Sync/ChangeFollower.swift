import HTTPCore
import SalternTesting
import Testing

/// A device that follows the changes of an account, and notices what must not be.
struct ChangeFollower {
    /// One change as the device sees it; nil for a body that was deleted.
    struct Change: Sendable, Equatable {
        let id: String
        let revision: Int64
        let body: String?
    }

    /// What the device holds, tombstones included.
    private(set) var state: [String: Change] = [:]
    /// Changes that came again or out of order.
    private(set) var disorders: [String] = []
    private(set) var lastRevision: Int64 = 0
    private var cursor: String?
    private let begins: Beginning

    /// What a device asks for that has no cursor.
    enum Beginning: Sendable {
        case withNothing
        /// It may hold items, so it needs every tombstone.
        case again
    }

    init(_ begins: Beginning = .again) {
        self.begins = begins
    }

    /// Takes changes in the order in which they come.
    mutating func take(_ changes: [Change]) {
        for change in changes {
            if change.revision <= lastRevision { disorders.append("\(change.revision) after \(lastRevision)") }
            lastRevision = max(lastRevision, change.revision)
            state[change.id] = change
        }
    }

    /// Fetches and takes the next page.
    /// - Returns: Whether there is nothing more at the moment.
    mutating func follow(_ client: TestClient, limit: Int) async throws -> Bool {
        let since = cursor.map { "&since=\($0)" } ?? ""
        let tombstones = begins == .again ? "&tombstones=all" : ""
        let page = try await client.get("/v1/changes?limit=\(limit)\(since)\(tombstones)")
        let next = try #require(page.string("cursor"), "\(page)")
        cursor = next
        take(
            try #require(page.array("changes")).map { json in
                let item = try json.object()
                return Change(
                    id: try #require(item["id"]).string(), revision: try #require(item["revision"]).integer(),
                    body: try item["body"]?.string())
            })
        return page.bool("more") == false
    }

    /// How the device differs from what is stored, a line for each item. One that began with nothing need not have heard
    /// of every tombstone.
    func differences(from stored: [Change]) -> [String] {
        let stored = Dictionary(uniqueKeysWithValues: stored.map { ($0.id, $0) })
        return Set(stored.keys).union(state.keys).sorted().compactMap { id in
            stored[id] == state[id] || begins == .withNothing && state[id] == nil && stored[id]?.body == nil
                ? nil : "\(id): device \(state[id]?.revision ?? 0), database \(stored[id]?.revision ?? 0)"
        }
    }
}
