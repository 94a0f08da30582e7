import Foundation
import Testing

@testable import SalternClient

/// Every case of the table in docs/api-guide.md, "Sync".
struct ReconciliationTests {
    private let id = ItemID.random()

    private func content(_ byte: UInt8) -> ItemContent {
        ItemContent(collection: "notes", format: "saltern-1", body: [byte])
    }

    private func stored(_ revision: Int64, _ byte: UInt8) -> StoredItem {
        StoredItem(id: id, revision: Revision(revision), content: content(byte), edit: 1)
    }

    private func change(_ base: Int64?, _ byte: UInt8?, sent: UInt8? = nil) -> LocalChange {
        LocalChange(
            id: id, sequence: 1, base: base.map(Revision.init), content: byte.map(content), edit: 2, baseContent: nil,
            sent: sent.map { .content(digest: content($0).digest) })
    }

    private func server(_ revision: Int64, _ byte: UInt8?) throws -> ItemState {
        let body = byte.map { #","format":"saltern-1","body":"\#(Data([$0]).base64EncodedString())""# } ?? ""
        let text =
            #"{"id":"\#(id)","revision":\#(revision),"collection":"notes","createdAt":"2026-01-01T00:00:00Z","#
            + #""updatedAt":"2026-01-01T00:00:00Z","deleted":\#(byte == nil)\#(body)}"#
        return try SalternAPI.decode(ItemState.self, Array(text.utf8))
    }

    @Test func `not changed here`() throws {
        #expect(Reconciliation.decide(item: stored(1, 1), change: nil, server: try server(1, 1)) == .nothing)
        #expect(Reconciliation.decide(item: stored(1, 1), change: nil, server: try server(2, 2)) == .take)
        #expect(Reconciliation.decide(item: nil, change: nil, server: try server(2, 2)) == .take)
        #expect(Reconciliation.decide(item: stored(1, 1), change: nil, server: try server(2, nil)) == .remove)
        #expect(Reconciliation.decide(item: nil, change: nil, server: try server(2, nil)) == .nothing)
    }

    @Test func `created again after a deletion, and lost when time went back`() throws {
        func decided(_ deletion: Int64, isComparing: Bool) throws -> Reconciliation {
            .decide(item: stored(2, 1), change: nil, server: try server(deletion, nil), isComparing: isComparing)
        }
        #expect(try decided(1, isComparing: true) == .sendAgain)
        #expect(try decided(3, isComparing: true) == .remove)
        #expect(try decided(1, isComparing: false) == .remove)
    }

    @Test func `what was never opened is looked at again`() throws {
        var item = stored(1, 1)
        item.edit = 0
        #expect(Reconciliation.decide(item: item, change: nil, server: try server(1, 1)) == .take)
        #expect(Reconciliation.decide(item: item, change: nil, server: try server(2, nil)) == .remove)
    }

    @Test func `changed here`() throws {
        let item = stored(1, 1)
        #expect(Reconciliation.decide(item: item, change: change(1, 2), server: try server(1, 1)) == .nothing)
        #expect(Reconciliation.decide(item: item, change: change(1, 2), server: try server(2, 3)) == .conflict)
        #expect(
            Reconciliation.decide(item: item, change: change(1, 2), server: try server(2, nil)) == .keepAgainstDeletion)
        #expect(
            Reconciliation.decide(item: item, change: change(1, 2), server: try server(2, 2))
                == .confirmed(isDone: true))
        #expect(
            Reconciliation.decide(item: item, change: change(1, 3, sent: 2), server: try server(2, 2))
                == .confirmed(isDone: false))
    }

    @Test func `new or deleted here`() throws {
        #expect(Reconciliation.decide(item: nil, change: change(nil, 2), server: try server(2, nil)) == .nothing)
        #expect(
            Reconciliation.decide(item: nil, change: change(nil, 2, sent: 2), server: try server(2, nil))
                == .keepAgainstDeletion)
        #expect(Reconciliation.decide(item: nil, change: change(nil, 2), server: try server(2, 3)) == .conflict)
        #expect(Reconciliation.decide(item: stored(1, 1), change: change(1, nil), server: try server(1, 1)) == .nothing)
        #expect(
            Reconciliation.decide(item: stored(1, 1), change: change(1, nil), server: try server(2, 2)) == .undoDeletion
        )
        #expect(
            Reconciliation.decide(item: stored(1, 1), change: change(1, nil), server: try server(2, nil))
                == .bothDeleted)
    }
}
