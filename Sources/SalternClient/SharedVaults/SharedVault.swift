public import Foundation

/// A vault whose items several accounts read and write: a description of its state on this device, and its operations.
///
/// ```swift
/// let family = try await vault.shared.make(name: "Family", as: "Ada")
/// let invitation = try await family.invite(base: url, role: .writer, label: "Bob")
/// show(invitation.link, invitation.code)
/// ```
///
/// The description does not change. ``SharedVaults/vault(_:)`` returns the present one.
///
/// - Members claim their names. Show ``SharedMember/distinctName`` and ``SharedMember/label``. Let a joiner and its
///   inviter compare ``SharedMember/words`` by voice.
/// - After a finding with ``SharedVaultProblem/stopsWriting``, unsent edits stay on the device.
/// - After the end of a membership, the items stay readable on the device until ``forget(evenAsMember:)``.
/// - The keys of memberships are hidden items of the account in the collection `saltern-vaults`. Each device has them.
public struct SharedVault: Identifiable, Sendable {
    /// The id.
    public let id: SharedVaultID
    /// The name.
    public let name: String
    /// The role of this account; nil after its membership has ended.
    public let role: SharedRole?
    /// True when the vault counts against this account's plan. False after the end of the membership.
    public let isOwner: Bool
    /// The present members, by name.
    public let members: [SharedMember]
    /// The former writers whose edits wait for a seal: ``SharedVaultProblem/waitsForSeal(count:)``.
    public let unsealed: [UnsealedWriter]
    /// The open invitations, the oldest first.
    public let invitations: [SharedInvitation]
    /// True when a former member has the present key. A manager's device rotates it at its next sync.
    public let isRotationDue: Bool
    /// The manager to which the owner offers the vault; nil for none.
    public let offeredTo: MemberID?
    /// False after a join until the inviter's device has confirmed it.
    public let isConfirmed: Bool
    /// The findings that a person should see.
    public let problems: [SharedVaultProblem]
    /// True when the membership has ended because a device of this account has left the vault.
    package let hasLeft: Bool
    /// Twelve words of the log's head. Members compare them by voice: equal words mean equal logs.
    public let verificationWords: [String]
    /// The number of entries in the log, of at most 4,096.
    public let entryCount: Int
    let vault: Vault

    /// The member that is this account.
    public var ownMember: SharedMember? { members.first(where: \.isOwn) }
    /// True when this account can write items.
    public var canWrite: Bool { (role.map { $0 >= .writer } ?? false) && !problems.contains(where: \.stopsWriting) }

    // MARK: Invitations

    /// Opens an invitation. Its link and code are returned once. Send them by different ways.
    /// - Parameters:
    ///   - base: The server's public address, `https://host`.
    ///   - label: A private note about the invited person.
    public func invite(
        base: URL, role: SharedRole = .reader, uses: Int = 1, expires: Duration = .seconds(7 * 86_400),
        code: InvitationCodeChoice = .generated, label: String? = nil
    ) async throws(VaultError) -> NewInvitation {
        try await vault.shared.withService { service throws(VaultError) in
            try await service.inviting.invite(
                id, role: role, uses: uses, expires: expires, code, label: label, base: base)
        }
    }

    /// Closes an invitation. Members that have joined by it stay.
    public func revoke(_ invitation: InvitationID) async throws(VaultError) {
        try await changing { changes throws(VaultError) in try await changes.revoke(invitation) }
    }

    // MARK: Members

    /// Gives a member another role.
    public func setRole(_ member: MemberID, to role: SharedRole) async throws(VaultError) {
        try await changing { changes throws(VaultError) in try await changes.setRole(member, to: role) }
    }

    /// Removes members, replaces the key, and lists the edits of the removed members that count.
    ///
    /// Other managers' devices complete an interrupted call, and a repeated one completes it as well.
    /// - Parameter replacingMissingKey: True to remove the members although this device lacks the present key. New
    ///   members then read earlier items only after a manager with that key has synced.
    /// - Throws: ``SharedVaultError/keyMissing`` without the key and the parameter.
    public func remove(_ members: Set<MemberID>, replacingMissingKey: Bool = false) async throws(VaultError) {
        try await changing { changes throws(VaultError) in
            try await changes.remove(members, replacingMissingKey: replacingMissingKey)
        }
    }

    /// Syncs, and ends the own membership. The items on this device stay until ``forget(evenAsMember:)``.
    /// - Parameter discardingUnsentEdits: False to throw when edits stay unsent after the sync, and to stay a member.
    /// - Throws: ``VaultError/unsentEdits(count:)``, ``SharedVaultError/ownerProtected``.
    public func leave(discardingUnsentEdits: Bool = false) async throws(VaultError) {
        try await changing { changes throws(VaultError) in
            try await changes.leave(discardingUnsentEdits: discardingUnsentEdits)
        }
    }

    /// Returns the number of edits that the server does not have.
    public func unsentCount() async throws(VaultError) -> Int {
        try await OwnedItems(vault, of: .vault(id)).unsentCount()
    }

    /// Removes the vault from this account's devices, after the membership has ended. Unsent edits of this device are
    /// lost. Another device with unsent edits keeps its copy, as of a vault that the account has left.
    /// - Parameter evenAsMember: True to remove a vault to which nothing is written any more, without leaving it.
    /// - Throws: Without `evenAsMember` ``SharedVaultError/notPermitted`` while this account is a member, and
    ///   ``VaultError/unsentEdits(count:)``.
    public func forget(evenAsMember: Bool = false) async throws(VaultError) {
        try await vault.shared.withService { service throws(VaultError) in
            if !evenAsMember {
                if let state = try service.state(id), state.role != nil { throw .shared(.notPermitted) }
                let count = try service.unsentCount(of: id)
                if count > 0 { throw .unsentEdits(count: count) }
            }
            try await service.forget(id)
        }
    }

    /// Ends the findings that a person has seen: ``SharedVaultProblem/rolledBack``,
    /// ``SharedVaultProblem/invalidLog`` and ``SharedVaultProblem/anotherHistory(_:)``. A later evidence reports them
    /// again.
    public func acknowledgeProblems() async throws(VaultError) {
        try await vault.shared.withService { service throws(VaultError) in
            try service.note(id) { findings in
                findings.isRolledBack = nil
                findings.isInvalid = nil
                findings.otherHistories = nil
            }
        }
    }

    /// Gives the vault another name, for all members. The next sync sends it.
    public func rename(_ name: String) async throws(VaultError) {
        try await changing { changes throws(VaultError) in try changes.service.writeName(name, id) }
    }

    // MARK: Items

    /// The items of the vault on this device: lists, unsent edits, the trash, replaced versions, notices, held
    /// deletions and attachments. ``SharedVault/collection(_:of:schema:)`` reads and writes them as values of a type.
    ///
    /// ```swift
    /// for shared in try await vault.shared.all() {
    ///     print(shared.name, try await shared.items.unsentCount(), try await shared.items.notices().count)
    /// }
    /// ```
    public var items: OwnedItems { OwnedItems(vault, of: .vault(id)) }

    /// Returns a collection of the vault's items. Its type and behaviour are those of the account's collections.
    ///
    /// ```swift
    /// for shared in try await vault.shared.all() {
    ///     let notes = shared.collection("notes", of: Note.self)
    ///     try await notes.put(Note(text: "Buy salt."))
    /// }
    /// ```
    public func collection<Value>(
        _ name: String, of type: Value.Type = Value.self, schema: ItemSchema<Value> = ItemSchema()
    ) -> VaultCollection<Value> {
        VaultCollection(name: name, vault: vault, owner: .vault(id), schema: schema)
    }

    // MARK: Keys and ownership

    /// Replaces the key under which items are written.
    /// - Parameter replacingMissingKey: True to do so although this device lacks the present key.
    /// - Throws: ``SharedVaultError/keyMissing`` without the key and the parameter.
    public func rotate(replacingMissingKey: Bool = false) async throws(VaultError) {
        try await changing { changes throws(VaultError) in
            try await changes.rotate(replacingMissingKey: replacingMissingKey)
        }
    }

    /// Fetches the edits of a former writer that wait for a manager's device, so that a person can decide about them.
    ///
    /// A manager's device that had the edits before the writer was cut off lists them when it syncs. Without such a
    /// device, only the server states which edits are older: with it, a former writer can add some. Show the counts of
    /// the proposal before ``seal(_:)``.
    /// - Throws: ``SharedVaultError/nothingToSeal``, ``SharedVaultError/listMissing``,
    ///   ``SharedVaultError/notPermitted``.
    public func proposeSeal(of member: MemberID) async throws(VaultError) -> SealProposal {
        try await vault.shared.withService { service throws(VaultError) in
            try await MembershipChanges(service: service, id: id).proposeSeal(of: member)
        }
    }

    /// Lets the edits of a proposal count, on each device after its next sync. Other edits of the writer from before it
    /// was cut off do not count any more.
    /// - Throws: ``SharedVaultError/nothingToSeal`` after another manager's seal, and ``SharedVaultError/busy`` when
    ///   the writer was cut off again.
    public func seal(_ proposal: SealProposal) async throws(VaultError) {
        try await changing { changes throws(VaultError) in try await changes.seal(proposal) }
    }

    /// Offers the vault to another manager; nil withdraws the offer.
    public func handOver(to member: MemberID?) async throws(VaultError) {
        try await changing { changes throws(VaultError) in try await changes.offer(to: member) }
    }

    /// Accepts the offered vault. From then on it counts against this account's plan.
    public func acceptHandOver() async throws(VaultError) {
        try await changing { changes throws(VaultError) in try await changes.acceptOffer() }
    }

    /// Deletes the vault with all its items, for all members.
    public func delete() async throws(VaultError) {
        try await changing { changes throws(VaultError) in try await changes.delete() }
    }

    private func changing(
        _ body: @Sendable (MembershipChanges) async throws(VaultError) -> Void
    ) async throws(VaultError) {
        try await vault.shared.withService { service throws(VaultError) in
            try await body(MembershipChanges(service: service, id: id))
        }
    }
}
