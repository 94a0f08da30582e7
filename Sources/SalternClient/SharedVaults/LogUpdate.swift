internal import Cryptography
internal import Foundation
internal import VaultLog

/// Compares the log of a shared vault on this device with that of the server.
///
/// It takes new entries and keys, puts missing entries back, and reports a server that shows another history. The
/// caller holds ``SharedVaultService/lock``.
struct LogUpdate {
    let service: SharedVaultService
    let id: SharedVaultID

    /// The maximum number of pages of a log.
    private static let pageLimit = 32
    /// The interval between two attempts to claim a member, in seconds.
    private static let claimInterval: Int64 = 3_600

    private var session: VaultSession { service.session }

    // MARK: Comparing

    /// Brings this device's log to the server's head.
    /// - Parameter description: The server's statement about the vault.
    func run(_ description: VaultDescription) async throws(VaultError) {
        try service.note(id) { $0.isEnded = nil }
        guard let state = try service.state(id) else { return try await fetch(after: 0) }
        let own = state.log.hashes
        let number = description.head.number
        guard number > 0 else { throw .unavailable(.unexpectedReply) }
        // A finding of the last refresh has been reported.
        if number >= UInt64(own.count) { try service.note(id) { $0.isRolledBack = nil } }
        if number > UInt64(own.count) { return try await fetch(after: UInt64(own.count)) }
        guard own[Int(number) - 1].bytes == description.head.hash.bytes else { return try await compare(state) }
        if number < UInt64(own.count) {
            try await putBack(from: number + 1, state, description)
        } else if state.presentKey == nil || description.boxMissing == true {
            try await fetch(after: number)
        }
    }

    /// Fetches the entries after a number, and takes them with the keys.
    func fetch(after known: UInt64) async throws(VaultError) {
        var number = known
        for _ in 0..<Self.pageLimit {
            let page = try await page(after: number)
            guard try await take(page) else { return }
            number += UInt64(page.entries.count)
            guard page.more, !page.entries.isEmpty else { return }
        }
        throw .unavailable(.unexpectedReply)
    }

    private func page(after number: UInt64) async throws(VaultError) -> VaultLogPage {
        let token = try service.token
        return try await service.call { api throws(APIError) in
            try await api.getVaultLog(id, after: number, token)
        }
    }

    /// Takes a page that continues the known log.
    /// - Returns: False when no further page is of use.
    private func take(_ page: VaultLogPage) async throws(VaultError) -> Bool {
        let state = try service.state(id)
        var log = state?.log
        var taken: [Entry] = []
        var isWhole = true
        for bytes in page.entries.map(\.bytes) {
            do {
                let entry = try Entry(bytes)
                if var present = log {
                    try present.append(entry)
                    log = present
                } else {
                    log = try MembershipLog(founding: entry)
                }
                taken.append(entry)
            } catch Entry.Malformation.unknownKind, Entry.Malformation.unknownVersion {
                // The verified beginning stays valid.
                isWhole = false
                break
            } catch EntryRejection.wrongPrevious where state != nil {
                try await compare(state)
                return false
            } catch {
                throw .unavailable(.unexpectedReply)
            }
        }
        guard let log, log.vault == VaultLog.VaultID(id) else { throw .unavailable(.unexpectedReply) }
        try service.take(taken, page.previousKeys, id)
        let lacksUpdate = !isWhole
        try service.note(id) { $0.needsUpdate = lacksUpdate ? true : nil }
        try await takeKeys(page)
        try await takeLists(page.seals ?? [])
        if !taken.isEmpty { service.notify([id]) }
        return isWhole
    }

    // MARK: Keys

    /// Opens the present key from this account's boxes, and keeps it with the head in the account's record.
    private func takeKeys(_ page: VaultLogPage) async throws(VaultError) {
        guard let state = try service.state(id), let own = state.own else { return }
        let present = state.log.currentGeneration
        var found = state.presentKey
        var isWrong = false
        let boxes = page.boxes.filter { $0.generation == present.number.value }
        if found == nil {
            for box in boxes {
                for keys in state.record.keys.compactMap(\.privateKeys) {
                    do throws(GenerationBox.Failure) {
                        found = try GenerationBox.open(
                            box.box.bytes, present, for: own.id, keys, of: state.log.vault)
                    } catch {
                        if case .wrongKey = error { isWrong = true }
                    }
                }
            }
        }
        let head = state.log.head
        var record = state.record
        record.memberId = MemberID(own.id)
        record.take(head)
        if let found { record.take(found, present.number) }
        if try record.body != state.record.body { try service.write(record, id) }
        let author = isWrong && found == nil ? try authorOfGeneration(present.number) : nil
        try service.note(id) { $0.broken = author }
        if found == nil, !boxes.isEmpty { try await reportBox(present.number, state) }
    }

    /// Reports a box that does not open, once for each generation, so that a manager's device makes it again.
    private func reportBox(_ number: GenerationNumber, _ state: SharedVaultState) async throws(VaultError) {
        guard state.findings.reportedBox != number.value else { return }
        let token = try service.token
        try await service.call { api throws(APIError) in try await api.removeOwnBox(id, token) }
        try service.note(id) { $0.reportedBox = number.value }
    }

    private func authorOfGeneration(_ number: GenerationNumber) throws(VaultError) -> MemberID? {
        let entries = try session.stored { try session.store.entries(of: id) }
        for entry in entries.reversed() {
            switch entry.payload {
            case .rotate(let generation), .remove(let generation, _):
                if generation.number == number { return MemberID(entry.author) }
            case .found: return MemberID(entry.author)
            default: break
            }
        }
        return nil
    }

    // MARK: Lists

    /// Fetches the lists of seals that this device lacks, and stores lists again that the server lacks.
    private func takeLists(_ stored: [UInt64]) async throws(VaultError) {
        guard let state = try service.state(id), !state.log.seals.isEmpty else { return }
        let token = try service.token
        for entry in try session.stored({ try session.store.entries(of: id) }) {
            guard case .seal(let seal) = entry.payload else { continue }
            let number = entry.number.value
            let known = try session.stored { try session.store.sealList(number, of: id) }
            if let known, !stored.contains(number) {
                // The list is not needed if the server has dropped it for its budget.
                try? await service.call { api throws(APIError) in
                    try await api.putSealList(id, number, known.bytes, token)
                }
            } else if known == nil, stored.contains(number) {
                let bytes = try await service.call { api throws(APIError) in
                    try await api.getSealList(id, number, token)
                }
                guard let list = SealList(bytes), list.isList(of: seal) else { throw .unavailable(.unexpectedReply) }
                try session.stored { try session.store.putSealList(list, number, of: id) }
            }
        }
    }

    // MARK: Other histories

    /// Fetches the server's whole log and compares it with the known one. Two valid logs with different entries at one
    /// number are the evidence of a fork.
    private func compare(_ known: SharedVaultState?) async throws(VaultError) {
        guard let known else { throw .unavailable(.unexpectedReply) }
        var entries: [Entry] = []
        for _ in 0..<Self.pageLimit {
            let page = try await page(after: UInt64(entries.count))
            for bytes in page.entries.map(\.bytes) {
                guard let entry = try? Entry(bytes) else { throw .unavailable(.unexpectedReply) }
                entries.append(entry)
            }
            guard page.more, !page.entries.isEmpty else { break }
        }
        guard let other = try? MembershipLog(entries), other.vault == known.log.vault else {
            throw .unavailable(.unexpectedReply)
        }
        switch LogComparison(own: known.log.hashes, other: other.hashes) {
        case .diverged(let number): try service.note(id) { $0.fork = number.value }
        case .same, .isBehind, .isAhead: break
        }
    }

    /// Puts entries back that the server lacks.
    private func putBack(
        from number: UInt64, _ state: SharedVaultState, _ description: VaultDescription
    ) async throws(VaultError) {
        guard description.recoveringUntil != nil else {
            // Without a restored database a shorter log is a server that shows an earlier state.
            return try service.note(id) { $0.isRolledBack = true }
        }
        let entries = try session.stored { try session.store.entries(of: id, from: number) }.map(\.bytes)
        let token = try service.token
        do throws(APIError) {
            _ = try await session.settings.retries({ () throws(APIError) in
                try await session.api.putEntriesBack(id, entries, token)
            })
        } catch {
            guard error.code == .membershipMoved else { throw VaultError(ofShared: error) }
            // Another member has put them back, or another entry stands there.
            return try await compare(state)
        }
        try service.note(id) { $0.isRolledBack = true }
        try await takeLists([])
    }

    // MARK: Ended memberships

    /// Decides about a vault that the server does not list. A member whose join was lost with the database claims its
    /// seat, if the known log has it as a present member.
    func decideMissing(at moment: Int64) async throws(VaultError) {
        guard let state = try service.state(id) else { return }
        guard let own = state.own, let signer = try? state.signer,
            moment - (state.findings.claimedAt ?? 0) >= Self.claimInterval
        else { return try service.note(id) { $0.isEnded = true } }
        try service.note(id) { $0.claimedAt = moment }
        let account = try session.open.account
        guard
            let statement = try? MemberStatement(
                .claim(MemberAccountID(account)), by: signer, state.log.head)
        else { throw .unreadable }
        let entries = try session.stored { try session.store.entries(of: id, from: own.joined.number.value) }
        let head = VaultHead(number: state.log.head.number.value, hash: state.log.head.hash.bytes)
        let token = try service.token
        do throws(APIError) {
            try await session.settings.retries({ () throws(APIError) in
                try await session.api.claimMember(
                    id, MemberID(own.id), head, signature: statement.signature.bytes, entries: entries.map(\.bytes),
                    token)
            })
        } catch {
            guard error.isRefusal else { throw VaultError(ofShared: error) }
            return try service.note(id) { $0.isEnded = true }
        }
        try service.note(id) { $0.isEnded = nil }
    }
}
