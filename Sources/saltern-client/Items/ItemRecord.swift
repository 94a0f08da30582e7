import CommandLineKit
import Cryptography
import Foundation
import SalternClient

/// An item in the form for scripts.
struct ItemRecord: Encodable {
    let id: ItemID
    let collection: String
    let title: String?
    /// The body, if it is UTF-8.
    let text: String?
    /// The body in base64, if it is not UTF-8.
    let data: String?

    init(_ summary: ItemSummary, _ body: SecureBytes) {
        id = summary.id
        collection = summary.collection
        title = summary.title
        text = body.withUnsafeBytes { String(validating: $0, as: UTF8.self) }
        data = text == nil ? Base64.encodeToString(body) : nil
    }

    /// Creates a record with empty content.
    init(_ summary: ItemSummary, empty form: JSONContent.Form) {
        id = summary.id
        collection = summary.collection
        title = summary.title
        text = form == .text ? "" : nil
        data = form == .data ? "" : nil
    }
}

/// A line of a list in the form for scripts.
struct ItemLine: Encodable {
    let id: ItemID
    let collection: String
    let title: String?
    let bytes: Int?
    let unsent: Bool
    /// True for an item that is longer than the plan allows, and cannot be sent.
    let tooLong: Bool
    let readable: Bool
    let removedAt: Date?

    init(_ summary: ItemSummary) {
        id = summary.id
        collection = summary.collection
        title = summary.title
        bytes = summary.byteCount
        unsent = summary.isUnsent
        tooLong = summary.shortage != nil
        readable = summary.byteCount != nil
        removedAt = summary.removedAt
    }
}

/// A notice in the form for scripts.
struct NoticeRecord: Encodable {
    let kind: String
    let item: ItemID?
    let other: ItemID?
    /// The ids of passkeys that no longer unlock.
    let passkeys: [Base64URLBytes]?

    init(_ notice: Notice) {
        kind = notice.kind.rawValue
        item = notice.item
        other = notice.other
        passkeys = notice.passkeys.isEmpty ? nil : notice.passkeys
    }
}

extension Notice {
    /// The notice as a sentence.
    var text: String { text(naming: [:]) }

    /// - Parameter names: The names of passkeys, by their ids. Others are shown by the beginning of the id.
    func text(naming names: [Base64URLBytes: String]) -> String {
        let item = item?.description ?? "an item"
        switch kind {
        case .conflict:
            return
                "\(item) was changed here and elsewhere; the version of this device is \(other?.description ?? "deleted")"
        case .keptAfterDeletion: return "\(item) was deleted elsewhere and changed here; the change was kept"
        case .deletionUndone: return "\(item) was deleted here and changed elsewhere; the change was kept"
        case .unreadable:
            return "the server's version of \(item) cannot be decrypted; it was rejected"
                + (self.other.map { "; the local change is \($0)" } ?? "")
        case .unreadableChange:
            return "the local change of \(item) cannot be decrypted; it stays here and is not sent: "
                + "saltern-client delete moves it to the trash and restores the server's version"
        case .rolledBack:
            return "the server returned an older version of \(item) than this device has; the newer one is sent again"
                + (self.other.map { "; the older one is \($0)" } ?? "")
        case .titleMissing:
            return "\(item) has lost its title: another device has removed it, or the server has omitted it"
        case .timeWentBack: return "the server's database was restored from a backup; nothing was deleted here"
        case .keptUnlisted: return "the server has lost \(item); it is sent again"
        case .quotaExceeded:
            return "the plan has no room for \(item); the change stays on this device until there is room: "
                + "saltern-client discard discards it"
        case .refused:
            return "a change of \(item) was rejected; it stays on this device: unsent (see saltern-client discard), in "
                + "the trash, or among the item's versions"
        case .massDeletion:
            return "many items were deleted elsewhere; they are still here: see saltern-client sync --allow-deletions"
        case .keyringRolledBack:
            return "the server has an older keyring than this device; it was rejected, and other devices cannot read "
                + "items of this one: if its database was restored, run saltern-client login --restore-keyring"
        case .recoveryRemoved:
            return "the account has no valid printed recovery code: run saltern-client recovery create"
        case .passkeysStoppedUnlocking:
            let shown = passkeys.map { id in
                VisibleText.visible(names[id] ?? String(Base64URL.encodeToString(id.bytes).prefix(12)))
            }
            return "passkeys of another client no longer unlock the account, and stay a second factor: "
                + shown.joined(separator: ", ")
        case .recoveryCodeOutdated:
            return "the printed recovery code is from before the rotation, and trusts the old keys: replace it with "
                + "saltern-client recovery create, or revoke it with saltern-client recovery remove"
        }
    }
}
