import Foundation
import Testing

@testable import SalternClient

/// States and notices that an app shows to a person.
@Suite struct StateSentenceTests {
    private static let kinds: [Notice.Kind] = [
        .conflict, .keptAfterDeletion, .deletionUndone, .unreadable, .unreadableChange, .rolledBack, .titleMissing,
        .timeWentBack, .keptUnlisted, .quotaExceeded, .refused, .massDeletion, .keyringRolledBack, .recoveryRemoved,
        .recoveryCodeOutdated, .passkeysStoppedUnlocking,
    ]

    private func check(_ sentences: [String]) {
        for sentence in sentences {
            #expect(sentence.hasSuffix(".") && sentence.first?.isUppercase == true, "\(sentence)")
            #expect(!sentence.contains("SalternClient") && !sentence.contains("Optional"), "\(sentence)")
        }
        #expect(Set(sentences).count == sentences.count)
    }

    @Test func `every notice is a sentence of its own, which tells of a copy where there is one`() {
        check(Self.kinds.map { Notice(number: 1, kind: $0, item: .random(), other: nil).localizedDescription })
        for kind in Self.kinds {
            let (alone, withCopy) = (
                Notice(number: 1, kind: kind, item: .random(), other: nil),
                Notice(number: 1, kind: kind, item: .random(), other: .random())
            )
            #expect(!alone.localizedDescription.contains("copy"))
            #expect(
                withCopy.localizedDescription.contains("copy")
                    == [.conflict, .unreadable, .rolledBack].contains(kind))
        }
    }

    @Test func `every state is a sentence of its own`() {
        let (error, moment) = (VaultError.unavailable(.transport(.unreachable)), Date())
        check(
            [
                SyncState.idle, .locked, .signedOut, .syncing, .inStep(since: moment), .failed(error, next: nil),
                .failed(error, next: moment),
            ].map(\.localizedDescription))
        #expect(SyncState.failed(error, next: nil).localizedDescription == error.localizedDescription)
        let today = SyncState.inStep(since: moment).localizedDescription
        let before = SyncState.inStep(since: moment - 100 * 86_400).localizedDescription
        #expect(before.count > today.count)
    }
}
