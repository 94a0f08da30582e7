import Cryptography
import Foundation
import SalternClient
import Synchronization

/// One account of a server, in memory: registration, log-in, changes, batches. It knows no quotas and no long bodies.
///
/// It decides as `ApplyBatch` and `ListChanges` of the server do; the other tests have the server itself.
final class MemoryServer: HTTPTransport {
    fileprivate struct Item {
        var revision: Int64
        var collection: String
        /// Nil for a tombstone.
        var content: Content?
    }

    fileprivate struct Content: Equatable {
        var format: String
        var iterations: Int?
        /// In base64, as everything that is sealed.
        var title: String?
        var body: String
    }

    /// One of a batch.
    private struct Operation {
        var id: String
        var collection: String?
        var content: Content?
        var ifRevision: Int64?

        init?(_ members: [String: Any]) {
            guard let id = members["id"] as? String else { return nil }
            self.id = id
            collection = members["collection"] as? String
            ifRevision = (members["ifRevision"] as? NSNumber)?.int64Value
            if let format = members["format"] as? String, let body = members["body"] as? String {
                content = Content(
                    format: format, iterations: (members["iterations"] as? NSNumber)?.intValue,
                    title: members["title"] as? String,
                    body: body)
            }
        }
    }

    private struct Conflict {
        var index: Int
        var id: String
        var code: String
        var revision: Int64?

        var members: [String: Any] {
            ["index": index, "id": id, "code": code, "revision": revision.map { $0 as Any } ?? NSNull()]
        }
    }

    fileprivate struct State {
        var keyring: String?
        var revision: Int64 = 0
        /// No revision of a future that was lost is given out again.
        var base: Int64 = 0
        var items: [String: Item] = [:]
    }

    private enum Outcome {
        case unchanged, changed
        case failed(String)
    }

    /// The database as it was.
    struct Backup: Sendable { fileprivate let state: State }

    let account = AccountID.random()
    private let state = Mutex(State())

    func backUp() -> Backup { Backup(state: state.withLock { $0 }) }

    /// The database is restored, and time has gone back.
    func restore(_ backup: Backup) {
        state.withLock { state in
            let base = max(state.revision, state.base) + 1_000
            state = backup.state
            state.base = base
        }
    }

    /// The latest revision.
    var revision: Int64 { state.withLock { max($0.revision, $0.base) } }

    /// The number of items, without tombstones.
    var itemCount: Int { state.withLock { state in state.items.values.count { $0.content != nil } } }

    /// The highest revision of an item or a tombstone; 0 without any.
    var highestItemRevision: Int64 { state.withLock { $0.items.values.map(\.revision).max() ?? 0 } }

    /// Removes an item without a tombstone, as a server that has removed an old one.
    func purge(_ id: ItemID) { state.withLock { $0.items[id.description] = nil } }

    /// Takes a revision for a change of something else.
    func takeRevision() { state.withLock { $0.revision = max($0.revision, $0.base) + 1 } }

    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply { try reply(to: request) }

    /// Carries out a request.
    func reply(to request: HTTPRequest) throws(TransportError) -> HTTPReply {
        let (status, members) = answer(request)
        guard let body = try? JSONSerialization.data(withJSONObject: members) else { throw .unacceptableReply }
        return HTTPReply(head: HTTPReplyHead(status: status, fields: []), body: [UInt8](body))
    }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream { throw .unreachable }

    private func answer(_ request: HTTPRequest) -> (Int, [String: Any]) {
        let parts = request.target.split(separator: "?", maxSplits: 1)
        let path = String(parts.first ?? "")
        let body = request.body.map { $0.withUnsafeBytes { Data($0) } }
        let members = body.flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: Any] } ?? [:]
        switch (request.method, path) {
        case (.get, "/v1/service"): return (200, service)
        case (.post, "/v1/kdf"): return (200, kdf(members["userid"] as? String ?? ""))
        case (.post, "/v1/accounts"):
            state.withLock { $0.keyring = members["keyring"] as? String }
            return (201, session)
        case (.post, "/v1/sessions"):
            let keyring = state.withLock { $0.keyring } ?? ""
            return (
                201, session.merging(["kdfUpgradeRequired": false, "keyring": keyring, "keyringRevision": 1]) { $1 }
            )
        case (.get, "/v1/changes"): return changes(Self.query(parts.count > 1 ? String(parts[1]) : ""))
        case (.post, "/v1/items/batch"):
            return batch((members["operations"] as? [[String: Any]] ?? []).compactMap(Operation.init))
        case (.get, _) where path.hasPrefix("/v1/items/"):
            let id = String(path.dropFirst("/v1/items/".count))
            guard let item = state.withLock({ $0.items[id] }), item.content != nil else {
                return problem(404, "not_found")
            }
            return (200, Self.members(id, item, isMetaOnly: false))
        default: return problem(404, "not_found")
        }
    }

    private func problem(_ status: Int, _ code: String, _ members: [String: Any] = [:]) -> (Int, [String: Any]) {
        (status, members.merging(["type": "about:blank", "title": code, "status": status, "code": code]) { $1 })
    }

    // MARK: Account

    private var service: [String: Any] {
        [
            "name": "memory", "saltPrefix": LiveServer.saltPrefix, "registration": "open", "formats": ["saltern-1"],
            "kdf": [
                "algorithm": "PBKDF2-HMAC-SHA256", "iterations": 10_000, "minimumIterations": 10_000,
                "maximumIterations": 10_000_000, "keyLength": 32,
            ],
            "shares": ["formats": ["aes-256-gcm"], "anonymous": false],
            "limits": [
                "useridBytes": 254, "keyringBytes": 65_536, "itemRequestBytes": 1 << 24, "itemsPerPage": 500,
                "changesPerPage": 500, "batchOperations": 500, "batchRequestBytes": 1 << 25,
            ],
            "pins": ["active": [String](), "backup": [String]()],
        ]
    }

    private func kdf(_ userid: String) -> [String: Any] {
        [
            "algorithm": "PBKDF2-HMAC-SHA256", "saltPrefix": LiveServer.saltPrefix,
            "salt": LiveServer.saltPrefix + userid, "iterations": 10_000, "keyLength": 32,
        ]
    }

    private var session: [String: Any] {
        [
            "accountId": account.description,
            "session": [
                "id": SessionID.random().description, "token": "slt_\(UUID())", "expiresAt": "2099-01-01T00:00:00Z",
            ],
        ]
    }

    // MARK: Items

    private static func query(_ text: String) -> [String: String] {
        text.split(separator: "&").reduce(into: [:]) { query, member in
            let parts = member.split(separator: "=", maxSplits: 1)
            query[String(parts[0])] = parts.count > 1 ? String(parts[1]).removingPercentEncoding : ""
        }
    }

    private static func members(_ id: String, _ item: Item, isMetaOnly: Bool) -> [String: Any] {
        var members: [String: Any] = [
            "id": id, "revision": item.revision, "collection": item.collection, "deleted": item.content == nil,
            "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
        ]
        guard let content = item.content, !isMetaOnly else { return members }
        members["format"] = content.format
        members["iterations"] = content.iterations
        members["title"] = content.title
        members["body"] = content.body
        return members
    }

    private func changes(_ query: [String: String]) -> (Int, [String: Any]) {
        let (items, base, end) = state.withLock { ($0.items, $0.base, max($0.revision, $0.base)) }
        // As far as it was followed, and up to where tombstones are of items that were never told of.
        let cursor = (query["since"] ?? "").split(separator: "-").compactMap { Int64($0) }
        let since = cursor.first ?? 0
        let floor = query["tombstones"] == "all" ? 0 : cursor.last ?? end
        guard cursor.last.map({ $0 >= base }) ?? true else { return problem(410, "cursor_expired") }
        let all = items.filter { $1.revision > since && ($1.revision > floor || $1.content != nil) }
            .sorted { $0.value.revision < $1.value.revision }
        let page = all.prefix(query["limit"].flatMap { Int($0) } ?? 100)
        let isLast = page.count == all.count
        let seen = page.last?.value.revision ?? end
        return (
            200,
            [
                "changes": page.map { Self.members($0.key, $0.value, isMetaOnly: query["fields"] == "meta") },
                "cursor": isLast ? "\(end)-\(end)" : "\(seen)-\(max(seen, cursor.last ?? end))", "more": !isLast,
                "revisionBase": base,
            ]
        )
    }

    private func batch(_ operations: [Operation]) -> (Int, [String: Any]) {
        // What is not there cannot be deleted.
        if operations.contains(where: { $0.content == nil && $0.ifRevision == 0 }) {
            return problem(422, "out_of_range", ["limit": 1])
        }
        let (conflicts, results) = state.withLock { state in
            let outcomes = operations.map { Self.decide($0, state.items[$0.id]) }
            let conflicts = zip(operations, outcomes).enumerated().compactMap { index, one -> Conflict? in
                guard case .failed(let code) = one.1 else { return nil }
                return Conflict(index: index, id: one.0.id, code: code, revision: state.items[one.0.id]?.revision)
            }
            guard conflicts.isEmpty else { return (conflicts, [Int64]()) }
            return (
                [],
                zip(operations, outcomes).map { operation, outcome in
                    let item = state.items[operation.id]
                    guard case .changed = outcome else { return item?.revision ?? 0 }
                    state.revision = max(state.revision, state.base) + 1
                    state.items[operation.id] = Item(
                        revision: state.revision, collection: operation.collection ?? item?.collection ?? "",
                        content: operation.content)
                    return state.revision
                }
            )
        }
        guard conflicts.isEmpty else {
            return problem(409, "batch_conflict", ["conflicts": conflicts.map(\.members)])
        }
        return (200, ["results": zip(operations, results).map { ["id": $0.id, "revision": $1] as [String: Any] }])
    }

    private static func decide(_ operation: Operation, _ item: Item?) -> Outcome {
        if let new = operation.content {
            if item?.content == new, item?.collection == operation.collection { return .unchanged }
        } else {
            guard let item else { return .failed("not_found") }
            if item.content == nil { return .unchanged }
        }
        if let revision = operation.ifRevision {
            let live = item?.content == nil ? nil : item?.revision
            if live ?? 0 != revision { return .failed("precondition_failed") }
        }
        return .changed
    }
}
