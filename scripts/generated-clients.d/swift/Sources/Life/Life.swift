import Foundation
import SalternAPI

/// An account's life, led by the Swift client that openapi-generator makes of openapi.yaml.
@main struct Life {
    /// A database that was restored several times: its revisions need 53 bits.
    static let highRevision: Int64 = 1 << 52

    var person = Person()
    var device = Person.client()
    var ids: [UUID] = []

    static func content() -> ItemContent {
        ItemContent(
            collection: "notes", format: format, iterations: Int(Int32.max), title: sealed(40), body: sealed(60))
    }

    static func main() async throws {
        var life = Life()
        try await life.register()
        try await life.items()
        try await life.versionsAndBytes()
        try await life.batch()
        try await life.keys()
        try await life.rotate()
        try await life.share()
        try await life.leave()
        print("the generated Swift client has led an account's life")
    }

    mutating func register() async throws {
        let service = try await ServiceAPI.describeService(apiConfiguration: person.anybody)
        try check(service.formats.contains(format), "the format in \(service.formats)")
        person.passwordKey = try await person.key("the first password")
        var request = RegistrationRequest(
            userid: person.userid, passwordKey: person.passwordKey, kdf: NewKDF(iterations: iterations),
            keyring: sealed(60), device: Device(name: "Swift"), invite: Person.environment["SALTERN_TEST_INVITE"])
        let anybody = person.anybody
        let made = try await AccountsAPI.register(registrationRequest: request, apiConfiguration: anybody)
        request.invite = nil
        try await refused(409, "userid_taken") { () async throws(ErrorResponse) in
            try await AccountsAPI.register(registrationRequest: request, apiConfiguration: anybody)
        }
        request.kdf.iterations = 10_000
        let problem = try await refused(422, "out_of_range") { () async throws(ErrorResponse) in
            try await AccountsAPI.register(registrationRequest: request, apiConfiguration: anybody)
        }
        try same(problem.limit, .int(service.kdf.minimumIterations), "the limit")
        let login = try await person.logIn(KnownDevice(name: "Swift", token: made.deviceToken), totp: "123456")
        try same(login.keyring, request.keyring ?? "", "the keyring")
        try check((login.keyringRevision ?? 0) >= 1 && !login.kdfUpgradeRequired, "a revision of the keyring")
        device = Person.client(login.session.token)
        let account = try await AccountsAPI.getAccount(apiConfiguration: device)
        let limits = account.limits
        let counts = [
            limits.items, limits.itemBytes, limits.bytes, limits.sessions, limits.shares, limits.deletedDays,
        ]
        try check(counts.allSatisfy { $0 > 0 }, "the limits of the plan, got \(limits)")
        try same(account.userid, person.userid, "the userid")
        try same(account.usage.items, 0, "items")
        try check(account.revisionBase > Self.highRevision, "a high base, got \(account.revisionBase)")
    }

    mutating func items() async throws {
        var stored: [ItemHeader] = []
        for collection in ["notes", "notes", "notes", nil] {
            var content = Self.content()
            content.collection = collection
            ids.append(UUID())
            let header = try await ItemsAPI.putItem(
                id: ids[ids.count - 1], itemContent: content, ifNoneMatch: .star, apiConfiguration: device)
            try check(header.revision > Self.highRevision, "a high revision, got \(header.revision)")
            stored.append(header)
        }
        let (id, device) = (ids[0], device)
        let second = Self.content()
        let replaced = try await ItemsAPI.putItem(
            id: id, itemContent: second, ifMatch: tag(stored[0].revision), apiConfiguration: device)
        try same(replaced.revision, stored[0].revision + 4, "the next revision")
        let item = try await ItemsAPI.getItem(id: id, apiConfiguration: device)
        try same(item.body, second.body, "the body")
        try same(item.title, second.title ?? "", "the title")
        try same(item.iterations, Int64(Int32.max), "the iterations")
        let problem = try await refused(412, "precondition_failed", as: ItemPreconditionProblem.self) {
            () async throws(ErrorResponse) in
            try await ItemsAPI.putItem(
                id: id, itemContent: Self.content(), ifMatch: tag(stored[0].revision), apiConfiguration: device)
        }
        try same(problem.current?.body, second.body, "the present body in a 412")

        let page = try await ItemsAPI.listItems(
            collection: "notes", fields: .meta, limit: 2, apiConfiguration: device)
        let rest = try await ItemsAPI.listItems(
            collection: "notes", fields: .meta, limit: 2, page: page.nextPage, apiConfiguration: device)
        let all = page.items + rest.items
        try check(all.count == 3 && all.allSatisfy { $0.body == nil }, "three headers, got \(all)")
        let others = try await ItemsAPI.listItems(collection: "default", apiConfiguration: device)
        try same(others.items.first?.id, ids[3], "the default item")
    }

    func versionsAndBytes() async throws {
        let present = try await ItemsAPI.getItem(id: ids[0], apiConfiguration: device)
        let versions = try await ItemsAPI.listVersions(id: ids[0], limit: 10, apiConfiguration: device).versions
        try same(versions.count, 1, "versions")
        try same(versions[0].revision, present.revision - 4, "the revision of the version")
        let version = try await ItemsAPI.getVersion(
            id: ids[0], revision: versions[0].revision, apiConfiguration: device)
        try check(version.body != present.body && version.revision == versions[0].revision, "the earlier content")

        let photo = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        let bytes = random(5_000)
        try bytes.write(to: photo)
        defer { try? FileManager.default.removeItem(at: photo) }
        _ = try await ItemsAPI.putItemBody(
            format: format, id: ids[1], body: photo, ifMatch: "*", collection: "photos", iterations: 1_000,
            title: urlSealed(39), apiConfiguration: device)
        let back = try await ItemsAPI.getItemBody(id: ids[1], apiConfiguration: device)
        try check(try Data(contentsOf: back) == bytes, "the bytes that were sent")
        try? FileManager.default.removeItem(at: back)
        let deletion = try await ItemsAPI.deleteItem(id: ids[1], ifMatch: "*", apiConfiguration: device)
        try check(deletion.deleted && deletion.restorableUntil != nil, "a tombstone that can be restored")
        let restored = try await ItemsAPI.restoreItem(
            id: ids[1], ifMatch: tag(deletion.revision), apiConfiguration: device)
        try same(restored.iterations, 1_000, "the iterations")
    }

    mutating func batch() async throws {
        let device = device
        let first = try await SyncAPI.listChanges(limit: 2, apiConfiguration: device)
        try check(first.more && first.changes.count == 2, "a page of two and more")
        let rest = try await SyncAPI.listChanges(since: first.cursor, limit: 500, apiConfiguration: device)
        try check(!rest.more && rest.changes.count == 2, "the other two")
        try check(rest.revisionBase > Self.highRevision, "a high base, got \(rest.revisionBase)")
        var operations: [BatchOperation] = []
        for id in ids[..<2] {
            let seen = try await ItemsAPI.getItem(id: id, apiConfiguration: device).revision
            operations.append(BatchOperation(op: .delete, id: id, ifRevision: seen))
        }
        ids[1] = UUID()
        let content = Self.content()
        operations.append(
            BatchOperation(
                op: .put, id: ids[1], ifRevision: 0, collection: content.collection, format: content.format,
                iterations: content.iterations, title: content.title, body: content.body))
        let kept = ids[3]
        let before = try await ItemsAPI.getItem(id: kept, apiConfiguration: device).revision
        let results = try await SyncAPI.writeBatch(batch: Batch(operations: operations), apiConfiguration: device)
            .results
        try same(results.count, 3, "results")
        try check(results[0].revision > before, "a revision above \(before), got \(results)")
        try same(results[2].revision, results[0].revision + 2, "consecutive revisions up to")
        let seen = try await SyncAPI.listChanges(since: rest.cursor, apiConfiguration: device).changes
        try same(seen.map(\.deleted), [true, true, false], "the changes")
        try same(seen[2].body, content.body, "the body of the batch")
        try same(seen[2].revision, results[2].revision, "the revision of the batch")
        let notes = try await SyncAPI.listChanges(
            collection: "notes", fields: .meta, tombstones: .all, apiConfiguration: device)
        try same(notes.changes.count, 3, "notes and tombstones")
        let stale = BatchOperation(op: .delete, id: kept, ifRevision: Self.highRevision)
        let problem = try await refused(409, "batch_conflict", as: BatchProblem.self) {
            () async throws(ErrorResponse) in
            try await SyncAPI.writeBatch(batch: Batch(operations: [stale]), apiConfiguration: device)
        }
        try same(problem.conflicts[0].revision, before, "the present revision in a conflict")
        ids.removeFirst()
    }
}
