public import Cryptography

/// Makes and signs entries.
///
/// An entry that is made here is well-formed. ``MembershipLog/append(_:)`` decides whether it is valid, also for its
/// author.
public enum EntryWriter {
    /// Founds a vault.
    /// - Returns: The founding entry, whose ``Entry/vault`` is the new id.
    public static func found(
        by founder: MemberID, named name: MemberName, _ keys: MemberPrivateKeys, _ key: GenerationKey,
        at time: EntryTime
    ) throws(P256.Failure) -> Entry {
        guard let name = try? SealedName(name, of: founder, NameKey(key)) else { throw .notAKey }
        return try found(by: founder, name, keys, key, at: time, nonce: SecureRandom.bytes(Founding.nonceCount))
    }

    static func found(
        by founder: MemberID, _ name: SealedName, _ keys: MemberPrivateKeys, _ key: GenerationKey, at time: EntryTime,
        nonce: [UInt8]
    ) throws(P256.Failure) -> Entry {
        guard let none = VaultID(repeatElement(0, count: VaultID.byteCount)) else {
            preconditionFailure("16 bytes are an id")
        }
        let founding = Founding(
            nonce: nonce, keys: keys.publicKeys, generation: Generation(key, number: .first), name: name)
        var header = Entry.Header(vault: none, number: .first, previous: .none, time: time, author: founder)
        let draft = header.bytes(.found) + EntryPayload.found(founding).bytes
        guard let vault = VaultID(EntryHash(of: draft).bytes.prefix(VaultID.byteCount)) else {
            preconditionFailure("a hash has 32 bytes")
        }
        header.vault = vault
        return try sign(header, .found(founding), with: ES256.SigningKey(keys.signing))
    }

    /// Makes an entry after the head of a log. For `join` and `rekey` there are separate functions.
    public static func entry(
        _ payload: EntryPayload, by author: MemberSigner, after log: MembershipLog, at time: EntryTime
    ) throws(EntryRejection) -> Entry {
        let header = try header(author.vault, author.member, log, time)
        return try library { () throws(P256.Failure) in try sign(header, payload, with: author.key) }
    }

    /// Joins by an invitation.
    /// - Parameters:
    ///   - name: The claimed name.
    ///   - key: The key of names from the preview of the invitation.
    public static func join(
        _ invitation: InvitationSecrets, as member: MemberID, named name: MemberName, _ keys: MemberPrivateKeys,
        _ key: NameKey, after log: MembershipLog, at time: EntryTime
    ) throws(EntryRejection) -> Entry {
        guard let name = try? SealedName(name, of: member, key) else { throw .library }
        return try join(invitation, as: member, name, keys, after: log, at: time)
    }

    static func join(
        _ invitation: InvitationSecrets, as member: MemberID, _ name: SealedName, _ keys: MemberPrivateKeys,
        after log: MembershipLog, at time: EntryTime
    ) throws(EntryRejection) -> Entry {
        let header = try header(log.vault, member, log, time)
        let text = header.bytes(.join) + EntryPayload.joinText(keys.publicKeys, invitation.id, name)
        return try library { () throws(P256.Failure) in
            let admission = try VaultSignature.sign(
                VaultLabel.admission.text(text), with: ES256.SigningKey(invitation.admissionKey))
            let join = Join(keys: keys.publicKeys, invitation: invitation.id, name: name, admission: admission)
            return try sign(header, .join(join), with: ES256.SigningKey(keys.signing))
        }
    }

    /// Replaces a member's keys.
    /// - Parameter author: The member with its present keys.
    public static func rekey(
        to keys: MemberPrivateKeys, by author: MemberSigner, after log: MembershipLog, at time: EntryTime
    ) throws(EntryRejection) -> Entry {
        let header = try header(author.vault, author.member, log, time)
        let text = header.bytes(.rekey) + keys.publicKeys.bytes
        return try library { () throws(P256.Failure) in
            let possession = try VaultSignature.sign(
                VaultLabel.rekey.text(text), with: ES256.SigningKey(keys.signing))
            return try sign(
                header, .rekey(Rekey(keys: keys.publicKeys, possession: possession)), with: author.key)
        }
    }

    private static func header(
        _ vault: VaultID, _ author: MemberID, _ log: MembershipLog, _ time: EntryTime
    ) throws(EntryRejection) -> Entry.Header {
        guard let number = log.head.number.next else { throw .full }
        return Entry.Header(vault: vault, number: number, previous: log.head.hash, time: time, author: author)
    }

    private static func library<Value>(
        _ body: () throws(P256.Failure) -> Value
    ) throws(EntryRejection) -> Value {
        do throws(P256.Failure) { return try body() } catch { throw .library }
    }

    static func sign(
        _ header: Entry.Header, _ payload: EntryPayload, with key: ES256.SigningKey
    ) throws(P256.Failure) -> Entry {
        let text = header.bytes(payload.kind) + payload.bytes
        let signature = try VaultSignature.sign(VaultLabel.entry.text(text), with: key)
        return Entry(header, payload, signature, bytes: text + signature.bytes)
    }
}
