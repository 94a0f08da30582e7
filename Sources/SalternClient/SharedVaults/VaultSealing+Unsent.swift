internal import Cryptography
internal import VaultLog

/// Unsent edits, and versions whose verdict may change with the log.
extension VaultSealing {
    var canSeal: Bool { canWrite && signer != nil && keys[log.currentGeneration.number] != nil }

    /// A digest of the head, the known keys, the lists, and this account's member.
    var stamp: [UInt8]? {
        var hash = SHA256.Incremental()
        var parts: [[UInt8]] = [log.head.hash.bytes, signer?.member.bytes ?? [], [canWrite ? 1 : 0]]
        parts += keys.numbers.map(\.value.bigEndianBytes)
        parts += lists.byDigest.keys.map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }
        for part in parts {
            hash.update(UInt64(part.count).bigEndianBytes)
            hash.update(part)
        }
        return hash.finalize().bytes
    }

    /// An edit of this member that the log has not cut off stays as it is under the present key. Another own edit is
    /// signed again at the present head. An accepted edit of another member keeps its author and its signature.
    func unsentForm(of content: ItemContent, _ id: ItemID, wasSent: Bool) -> UnsentForm {
        guard canSeal, let signer, let signed = try? signed(content, id) else { return .none }
        let (author, head) = (signed.body.author, signed.body.head)
        let isUnderPresentKey = signed.generation == log.currentGeneration.number
        if author == signer.member {
            let stands = log.place(of: head) == .known && log.cut(of: author, at: head.number) == nil
            if stands, isUnderPresentKey { return .present }
        } else if counts(signed, isHeld: false) {
            if isUnderPresentKey { return .present }
            return renewed(content, id, from: self).map { .other($0, edit: signed.edit.number) } ?? .none
        } else if !own.contains(author) {
            return .none
        }
        // Bytes that the server may have are replaced by a later edit.
        let edit = wasSent ? next(signed.edit, after: content, id) : signed.edit
        guard let opened = try? open(content, id).item,
            let sealed = try? seal(opened, id, collection: content.collection, edit)
        else { return .none }
        return .other(sealed, edit: edit.number)
    }

    func stillCounts(_ item: StoredItem) -> Bool {
        // A version whose key is missing was accepted with it.
        guard let signed = try? signed(item.content, item.id) else { return true }
        let cut = log.cut(of: signed.body.author, at: signed.body.head.number)
        return counts(signed, isHeld: cut.map { (item.judgedAt ?? .max) < Int64($0.value) } ?? true)
    }

    private func counts(_ signed: Signed, isHeld: Bool) -> Bool {
        let evidence = EditEvidence(isHeld: isHeld, lists: lists.byDigest)
        return (try? log.check(signed.body, signed.statement, signed.generation, evidence)) != nil
    }
}
