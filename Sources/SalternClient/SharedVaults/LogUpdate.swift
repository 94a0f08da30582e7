internal import Cryptography
internal import Foundation
internal import VaultLog

/// Brings the log of a shared vault on this device to that of the server.
///
/// It takes new entries and keys, puts missing entries back, and reports a server that shows another history. The
/// caller holds ``SharedVaultService/lock``.
struct LogUpdate {
    let service: SharedVaultService
    let id: SharedVaultID

    /// The maximum number of pages of a log.
    private static let pageLimit = 32
    /// The maximum number of entries in a page, and of all other values for one log.
    private static let entryLimit = 512

    private var session: VaultSession { service.session }

    // MARK: Comparing

    /// Brings this device's log to the server's head.
    /// - Parameter description: The server's statement about the vault.
    func run(_ description: VaultDescription) async throws(VaultError) {
        try service.note(id) {
            $0.noteEnd(at: nil)
            $0.claimedAt = nil
        }
        let isRecovering = self.isRecovering(description)
        guard let state = try service.state(id) else {
            // Entries of a recovering vault are provisional.
            if !isRecovering { try await fetch(after: 0, description) }
            return try noteOtherDevices()
        }
        let own = state.log.hashes
        let number = description.head.number
        guard number > 0 else { throw .unavailable(.unexpectedReply) }
        if number <= UInt64(own.count), own[Int(number) - 1].bytes != description.head.hash.bytes {
            try await compare(state, description, isRecovering)
        } else if number < UInt64(own.count) {
            try await putBack(from: number + 1, state, isRecovering, isOwner: description.owner)
        } else if number > UInt64(own.count) {
            // Only the owner needs the entries that others put back: it ends the recovery with all of them.
            if !isRecovering || description.owner {
                try await fetch(after: UInt64(own.count), description)
            }
        } else if try isIncomplete(state, description) {
            try await fetch(after: number, description)
        }
        try noteOtherDevices()
    }

    /// True between the restore of the server's database and the confirmation by the owner's device.
    private func isRecovering(_ description: VaultDescription?) -> Bool {
        description?.recoveringUntil.map { $0 > session.serverTime } ?? false
    }

    /// True when this device lacks a key or a list of the entries that it has.
    private func isIncomplete(
        _ state: SharedVaultState, _ description: VaultDescription
    ) throws(VaultError) -> Bool {
        if state.presentKey == nil || description.boxMissing == true || !state.brokenGenerations.isEmpty { return true }
        for latest in state.log.latestSeals where Int64(latest.seal.count) <= Self.listLimit(description) {
            if try session.stored({ try session.store.sealList(latest.number.value, of: id) }) == nil { return true }
        }
        return false
    }

    /// Compares with the heads that other devices of this account have seen.
    private func noteOtherDevices() throws(VaultError) {
        guard let state = try service.state(id) else { return }
        if let number = state.record.difference(from: state.log) {
            try service.note(id) { $0.fork = $0.fork ?? number }
        } else if state.record.highestNumber > state.log.head.number.value, state.findings.needsUpdate != true {
            try service.note(id) { $0.isRolledBack = true }
        }
    }

    // MARK: Entries

    /// The values of all pages that are used after the last one.
    private struct Fetched {
        var boxes: [VaultKeyBox] = []
        var previous: [GenerationNumber: [UInt8]] = [:]
        var lists: Set<UInt64> = []

        /// Adds a page of a server.
        /// - Returns: False for more values than a log has.
        mutating func add(_ page: VaultLogPage) -> Bool {
            let limit = Int(EntryNumber.limit)
            guard page.entries.count <= LogUpdate.entryLimit, page.boxes.count <= LogUpdate.entryLimit,
                page.previousKeys.count <= limit, page.seals?.count ?? 0 <= limit
            else { return false }
            boxes = page.boxes
            for key in page.previousKeys where key.key.bytes.count == GenerationKey.sealedPreviousByteCount {
                if let number = GenerationNumber(key.generation) { previous[number] = key.key.bytes }
            }
            lists.formUnion(page.seals ?? [])
            return true
        }
    }

    /// Fetches the entries after a number, and takes them with the keys.
    ///
    /// Entries above the stated head wait for the next refresh, which fetches the items before.
    func fetch(after known: UInt64, _ description: VaultDescription? = nil) async throws(VaultError) {
        let limit = description?.head.number ?? .max
        var number = known
        var fetched = Fetched()
        var isWhole = false
        for _ in 0..<Self.pageLimit where !isWhole {
            let page = try await page(after: number)
            guard fetched.add(page) else { throw .unavailable(.unexpectedReply) }
            let entries = page.entries.prefix(Int(clamping: limit - number)).map(\.bytes)
            number += UInt64(entries.count)
            isWhole = try await take(entries, description) || !page.more || page.entries.isEmpty || number == limit
        }
        try takeKeys(fetched)
        try await reportBox(fetched.boxes)
        try await takeLists(fetched.lists, limit: description.map(Self.listLimit))
        if !isWhole { throw .unavailable(.unexpectedReply) }
    }

    private func page(after number: UInt64) async throws(VaultError) -> VaultLogPage {
        let token = try service.token
        return try await service.call { api throws(APIError) in
            try await api.getVaultLog(id, after: number, token)
        }
    }

    /// Takes entries that continue the known log. A verified beginning stays valid.
    /// - Returns: True when no further page is of use.
    private func take(_ entries: [[UInt8]], _ description: VaultDescription?) async throws(VaultError) -> Bool {
        let state = try service.state(id)
        var log = state?.log
        var taken: [Entry] = []
        var failure: (any Error)?
        do {
            for bytes in entries {
                let entry = try Entry(bytes)
                if log != nil {
                    try log?.append(entry)
                } else {
                    let founded = try MembershipLog(founding: entry)
                    guard founded.vault == VaultLog.VaultID(id) else { throw EntryRejection.wrongVault }
                    log = founded
                }
                taken.append(entry)
            }
        } catch {
            failure = error
        }
        guard log != nil || failure != nil else { throw .unavailable(.unexpectedReply) }
        try service.take(taken, id)
        if !taken.isEmpty { service.notify([id]) }
        switch failure {
        case nil:
            try service.note(id) { $0.needsUpdate = nil }
            return false
        case Entry.Malformation.unknownKind?, Entry.Malformation.unknownVersion?:
            // A finding needs a log, which this device does not have yet.
            guard try service.state(id) != nil else { throw .shared(.updateNeeded) }
            try service.note(id) { $0.needsUpdate = true }
            return true
        case EntryRejection.wrongPrevious? where state != nil:
            guard let state = try service.state(id) else { return true }
            try await compare(state, description, isRecovering(description))
            return true
        default:
            throw .unavailable(.unexpectedReply)
        }
    }

    // MARK: Keys

    /// Opens the present key from this account's boxes and the keys before it, and keeps what the account's other
    /// devices need in its record.
    private func takeKeys(_ fetched: Fetched) throws(VaultError) {
        guard let state = try service.state(id), let own = state.own else { return }
        let present = state.log.currentGeneration
        var found = state.presentKey
        for box in fetched.boxes where found == nil && box.generation == present.number.value {
            found = open(box, state, own)
        }
        let memberId = MemberID(own.id)
        try session.transaction {
            try service.update(id) { record in
                record.memberId = memberId
                if let found { record.take(found, present.number) }
            }
            try service.takePreviousKeys(fetched.previous, id)
            let previous = try session.store.previousKeys(of: id)
            try service.update(id) { record in
                record.dropReachable(previous, in: state.log)
                record.takeHead(of: state.log)
                record.dropLabels(in: state.log)
            }
        }
        try notePrevious(fetched.previous)
    }

    /// Compares the server's sealed previous keys with the keys of this device. A restored database, or a manager, can
    /// have lost them.
    func comparePreviousKeys() async throws(VaultError) {
        guard let state = try service.state(id) else { return }
        var fetched = Fetched()
        guard fetched.add(try await page(after: state.log.head.number.value)) else {
            throw .unavailable(.unexpectedReply)
        }
        try notePrevious(fetched.previous)
    }

    /// Notes the generations whose previous key the server lacks, or has in bytes that do not open.
    private func notePrevious(_ sealed: [GenerationNumber: [UInt8]]) throws(VaultError) {
        guard let state = try service.state(id), state.role == .manager else { return }
        var lost: Set<GenerationNumber> = []
        for (earlier, later) in zip(state.log.generations, state.log.generations.dropFirst()) {
            guard let key = state.keys[later.number], state.keys[earlier.number] != nil,
                sealed[later.number].flatMap({ key.openPrevious($0, of: state.log.vault, earlier) }) == nil
            else { continue }
            lost.insert(later.number)
        }
        service.lostPreviousKeys[id] = lost
    }

    private func open(_ box: VaultKeyBox, _ state: SharedVaultState, _ own: VaultMember) -> GenerationKey? {
        for keys in state.record.keys.compactMap(\.privateKeys) {
            if let key = try? GenerationBox.open(
                box.box.bytes, state.log.currentGeneration, for: own.id, keys, of: state.log.vault)
            {
                return key
            }
        }
        return nil
    }

    /// Reports a box that does not open, once, so that a manager's device makes it again. Boxes are not signed, so it
    /// is the evidence of no member's fault.
    private func reportBox(_ boxes: [VaultKeyBox]) async throws(VaultError) {
        guard let state = try service.state(id), state.own != nil, state.presentKey == nil,
            let box = boxes.first(where: { $0.generation == state.log.currentGeneration.number.value })
        else { return }
        let digest = Base64Bytes(SHA256.hash(box.box.bytes).bytes)
        guard state.findings.reportedBox != digest else { return }
        let token = try service.token
        try await service.call { api throws(APIError) in try await api.removeOwnBox(id, token) }
        try service.note(id) { $0.reportedBox = digest }
    }

    // MARK: Lists

    /// The number of edits for which a request has room. The plan of a former owner can have permitted as many.
    private static let listFloor: Int64 = 131_072

    /// The maximum number of edits in a list, by the server's statement about the vault.
    private static func listLimit(_ description: VaultDescription) -> Int64 {
        max(description.limits.items, description.usage.items, listFloor)
    }

    /// Fetches the lists of the latest seals that this device lacks. A manager's device stores lists again that the
    /// server lacks, once while the process runs.
    /// - Parameter limit: The maximum number of edits in a list, by the server's statement; nil when it is unknown.
    private func takeLists(_ stored: Set<UInt64>, limit: Int64?) async throws(VaultError) {
        guard let state = try service.state(id) else { return }
        let seals = state.log.latestSeals
        guard !seals.isEmpty else { return }
        let token = try service.token
        var isNew = false
        for latest in seals {
            let number = latest.number.value
            let known = try session.stored { try session.store.sealList(number, of: id) }
            if let known {
                let offered = OfferedList(vault: id, number: number)
                guard state.role == .manager, !stored.contains(number), service.offeredLists.insert(offered).inserted
                else { continue }
                do throws(VaultError) {
                    try await service.call { api throws(APIError) in
                        try await api.putSealList(id, number, known.bytes, token)
                    }
                } catch {
                    // The server has dropped it for its budget. After another error it can lack the seal itself.
                    if !error.isRefusalForWantOfRoom { service.offeredLists.remove(offered) }
                    guard error.isOfVaultAlone else { throw error }
                }
            } else if stored.contains(number), limit.map({ Int64(latest.seal.count) <= $0 }) ?? true {
                let bytes: [UInt8]
                do throws(VaultError) {
                    bytes = try await service.call { api throws(APIError) in
                        try await api.getSealList(id, number, token)
                    }
                } catch {
                    // A later seal can have replaced the list since. The next sync asks again.
                    guard error.isOfVaultAlone else { throw error }
                    continue
                }
                // Another list is as good as none.
                guard let list = SealList(bytes), list.isList(of: latest.seal) else { continue }
                try session.stored { try session.store.putSealList(list, number, of: id) }
                isNew = true
            }
        }
        try session.stored { try session.store.keepSealLists(seals.map(\.number.value), of: id) }
        if isNew { service.forgetState(id) }
    }

    // MARK: Other histories

    /// Compares the server's log with the known one, up to the first difference. Two valid entries of one number are
    /// the evidence of a fork, whatever follows them.
    private func compare(
        _ known: SharedVaultState, _ description: VaultDescription?, _ isRecovering: Bool
    ) async throws(VaultError) {
        // The finding stays. One statement of the server is compared once.
        guard known.findings.fork == nil else { return }
        if let head = description?.head.hash, head == known.findings.comparedHead { return }
        let own = known.log.hashes
        var count = 0
        var difference: Entry?
        pages: for _ in 0..<Self.pageLimit {
            let page = try await page(after: UInt64(count))
            guard page.entries.count <= Self.entryLimit else { throw .unavailable(.unexpectedReply) }
            for bytes in page.entries.map(\.bytes) {
                guard let entry = try? Entry(bytes) else { throw .unavailable(.unexpectedReply) }
                guard count < own.count else { break pages }
                guard entry.hash == own[count] else {
                    difference = entry
                    break pages
                }
                count += 1
            }
            guard page.more, !page.entries.isEmpty else { break }
        }
        if let difference {
            guard try isValid(difference, after: count) else { throw .unavailable(.unexpectedReply) }
            let number = UInt64(count) + 1
            guard isRecovering else { return try service.note(id) { $0.fork = number } }
            // The entries since the backup are provisional until the owner's device has put its own back.
            if description?.owner == true { try await putBack(from: number, known, true, isOwner: true) }
            return
        }
        try service.note(id) { findings in
            // The server's log is the known one, or its beginning. Then another statement of the server is false.
            if count < own.count { findings.isRolledBack = true } else { findings.isInvalid = true }
            findings.comparedHead = description?.head.hash ?? findings.comparedHead
        }
    }

    /// True when an entry is valid after so many entries of the known log.
    private func isValid(_ entry: Entry, after count: Int) throws(VaultError) -> Bool {
        let entries = try session.stored { try session.store.entries(of: id) }.prefix(count)
        guard !entries.isEmpty else { return (try? MembershipLog(founding: entry)) != nil }
        guard var log = try? MembershipLog(entries, areVerified: true) else { throw .store(.damaged) }
        return (try? log.append(entry)) != nil
    }

    /// The number of entries in one request that puts entries back.
    private static let putBackLimit = 200

    /// Puts entries back that the server lacks.
    /// - Parameter isOwner: True for the owner by the server's statement. The server can have lost a hand-over.
    private func putBack(
        from number: UInt64, _ state: SharedVaultState, _ isRecovering: Bool, isOwner: Bool
    ) async throws(VaultError) {
        try service.note(id) { $0.isRolledBack = true }
        // Without a restored database a shorter log is a server that shows an earlier state.
        guard isRecovering, let own = state.own else { return }
        var entries = try session.stored { try session.store.entries(of: id, from: number) }[...]
        if !isOwner {
            // Members put back the entries of others. Their own would prove nothing.
            entries = entries.prefix { $0.author != own.id }
        }
        while !entries.isEmpty {
            let slice = entries.prefix(Self.putBackLimit).map(\.bytes)
            entries = entries.dropFirst(slice.count)
            let token = try service.token
            do throws(APIError) {
                _ = try await session.settings.retries({ () throws(APIError) in
                    try await session.api.putEntriesBack(id, slice, token)
                })
            } catch {
                // Another member has put them back, or another entry stands there. The next refresh compares.
                guard error.code == .membershipMoved else { throw VaultError(ofShared: error) }
                return
            }
        }
        try await takeLists([], limit: nil)
    }

    // MARK: Ended memberships

    /// The interval between two attempts to claim a member, in seconds.
    private static let claimInterval: Int64 = 3_600

    /// Decides about a vault that the server does not list. A member whose join was lost with the database claims its
    /// seat, if the known log has it as a present member. Until another member's device has put the join back, the
    /// server refuses the claim.
    func decideMissing(at moment: Int64) async throws(VaultError) {
        guard let state = try service.state(id) else { return }
        guard let own = state.own, let signer = try? state.signer,
            !isRecent(state.findings.claimedAt, at: moment, within: Self.claimInterval)
        else { return try service.noteEnd(of: id) }
        let account = try session.open.account
        // The server can lack later entries than the join.
        guard let statement = try? MemberStatement(.claim(MemberAccountID(account)), by: signer, own.joined) else {
            throw .unreadable
        }
        let head = VaultHead(number: own.joined.number.value, hash: own.joined.hash.bytes)
        let token = try service.token
        do throws(APIError) {
            try await session.settings.retries({ () throws(APIError) in
                try await session.api.claimMember(
                    id, MemberID(own.id), head, signature: statement.signature.bytes, token)
            })
        } catch {
            // A lost reply decides nothing.
            guard error.isRefusal else { throw VaultError(ofShared: error) }
            try service.note(id) { $0.claimedAt = moment }
            return try service.noteEnd(of: id)
        }
        try service.note(id) {
            $0.claimedAt = moment
            $0.noteEnd(at: nil)
        }
    }
}

/// True for a time within an interval before `moment`. A time in the future, by a wrong clock, is not.
func isRecent(_ time: Int64?, at moment: Int64, within interval: Int64) -> Bool {
    time.map { (0..<interval).contains(moment - $0) } ?? false
}
