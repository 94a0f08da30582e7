import CommandLineKit
import SalternClient

/// Messages and codes for errors of the client kit.
enum Explanation {
    static func explain(_ error: any Error) -> CommandFailure? {
        switch error {
        case let error as VaultError: failure(for: error)
        case let error as StoreError: failure(for: error)
        case FolderError.vault(let error): failure(for: error)
        case FolderError.unusable:
            unreadable("the folder cannot be opened or written", "unusable_folder")
        case FolderError.holdsStore:
            CommandFailure(
                "the folder contains this account's store, or is inside it: sync another one",
                status: ExitStatus.configuration,
                code: "store_in_folder")
        case FolderError.copy(let other):
            CommandFailure(
                "the folder is a copy of \(VisibleText.visible(other)), which still exists: remove .saltern/folder in "
                    + "the copy to make it a separate folder", status: ExitStatus.configuration, code: "copied_folder"
            )
        case FolderError.outdated:
            CommandFailure(
                "the folder is an older copy of a synced folder, or was restored from a backup; with "
                    + "--allow-deletions it starts as a new folder: nothing is deleted, and both versions of differing files are kept",
                status: ExitStatus.configuration, code: "outdated_folder")
        case FolderError.nested(let outer):
            CommandFailure(
                "the folder is in \(VisibleText.visible(outer)), which is in sync: both folders would send the same files",
                status: ExitStatus.configuration, code: "nested_folder")
        case FolderError.otherCollection(let collection):
            CommandFailure(
                "the folder is in sync with the collection \(VisibleText.visible(collection)): give "
                    + (ShellWord.quoted(collection).map { "--collection \($0)" } ?? "that one with --collection")
                    + ", or another folder; to change it, remove .saltern/folder in it and give --allow-deletions; "
                    + "the items of \(VisibleText.visible(collection)) stay",
                status: ExitStatus.configuration, code: "other_collection")
        case FolderError.otherAccount:
            CommandFailure(
                "the folder is in sync with another account or shared vault and contains its files: give that vault with "
                    + "--vault or another folder, or remove .saltern/folder in it to send its files to this account",
                status: ExitStatus.configuration,
                code: "folder_of_other_account")
        case FolderError.secondFolder(let other):
            CommandFailure(
                "the collection is in sync with \(VisibleText.visible(other)) already, and both folders would get all files; "
                    + "give --collection NAME to keep them apart, or --second-folder to accept that",
                status: ExitStatus.configuration, code: "second_folder")
        case FolderError.cancelled: interrupted
        case let error as APIError: failure(for: VaultError.unavailable(error))
        case let error as TransportError: failure(for: error)
        case is CancellationError: interrupted
        default: nil
        }
    }

    static let interrupted = CommandFailure(
        "ended by a signal; nothing was lost", status: ExitStatus.interrupted, code: "interrupted")

    private static func failure(for error: VaultError) -> CommandFailure {
        switch error {
        case .wrongCredentials: denied("the userid or the password is wrong", "wrong_credentials")
        case .codeRequired: denied("the account has a second factor: see --code-file", "code_required")
        case .wrongCode: denied("the code is wrong, too old or already used", "wrong_code")
        case .passkeyRequired(let orCode):
            denied(
                "the account has a passkey as second factor: plug in the security key"
                    + (orCode ? ", or see --code-file" : ""), "passkey_required")
        case .wrongPasskey: denied("the server does not accept the passkey", "wrong_passkey")
        case .passkey(let error): failure(for: error)
        case .locked: denied("the vault is locked: saltern-client unlock opens it, also without network", "locked")
        case .sessionEnded:
            denied("the session has ended: log in again; no data on this device is lost", "session_ended")
        case .refused(let problem) where ["not_permitted", "role_too_low"].contains(problem.code):
            SharedVaultError.notPermitted
        case .refused(let problem):
            failure(for: problem, status: problem.code == .notFound ? ExitStatus.notFound : 1)
        case .unavailable(let error): failure(for: error)
        case .untrustworthy(.tooManyIterations(let maximum)):
            untrustworthy(
                "the server requests more KDF iterations than the maximum of this client, \(maximum)", "excessive_kdf")
        case .untrustworthy(let refusal):
            untrustworthy("the server requests unacceptable KDF parameters: \(refusal.text)", "weak_kdf")
        case .useridNotCanonical(let canonical):
            CommandFailure(
                "the userid is not in canonical form; use \(VisibleText.visible(canonical))",
                status: 1,
                code: "userid_not_canonical")
        case .keyringUnusable:
            untrustworthy(
                "the server has no keyring of this client, or an older one than this device; if its database was restored: "
                    + "saltern-client login --restore-keyring", "keyring_unusable")
        case .keyringReplaced:
            untrustworthy(
                "the server's keyring cannot be opened, but a kept keyring can: a session or a later version of this client "
                    + "has replaced it; saltern-client login --restore-keyring, or recovery use "
                    + "--restore-keyring, restores it", "keyring_replaced")
        case .keyringNotRestorable:
            untrustworthy(
                "the server has an earlier password than the newest keys of this device, and must not get these keys: export "
                    + "the items, log out, log in, and import them", "keyring_not_restorable")
        case .malformedRecoveryCode: unreadable("the recovery code has a typing error", "malformed_recovery_code")
        case .otherAccount:
            CommandFailure(
                "this device already has another account: see --account", status: ExitStatus.exists,
                code: "other_account")
        case .unsentEdits(let count):
            CommandFailure(
                counted(count, "change was", "changes were") + " not sent; sync first, or see --discard-unsent",
                status: ExitStatus.attention,
                code: "unsent_changes")
        case .deletionsHeld:
            CommandFailure(
                "many deletions wait for confirmation: see saltern-client sync --allow-deletions",
                status: ExitStatus.attention, code: "deletions_held")
        case .noRoom(let shortage):
            CommandFailure(
                shortage.text
                    + (shortage.limit == .itemBytes ? "; a file of a folder in sync may be longer (sync DIR)" : ""),
                status: 1, code: "no_room")
        case .notFound: CommandFailure("the item does not exist", status: ExitStatus.notFound, code: "not_found")
        case .sourceFailed: unreadable("the file cannot be read", "unreadable")
        case .missingChunk: unreadable("the server does not have a part of it", "unreadable")
        case .damagedChunk: unreadable("a part of it is damaged on the server", "unreadable")
        case .wrongShareKey: unreadable("the key at the link's end does not open it", "unreadable")
        case .invalidCollection(let name):
            CommandFailure(
                "\(VisibleText.visible(name)) cannot be a collection's name: 1 to 32 of a-z, 0-9 and -", status: 1,
                code: "invalid_collection")
        case .invalidDocuments(let fault): unreadable("line \(fault.line): \(fault.text)", "unreadable")
        case .unreadable: unreadable("it cannot be read", "unreadable")
        case .shared(let error): error.failure
        case .store(let error): failure(for: error)
        }
    }

    private static func failure(for error: PasskeyError) -> CommandFailure {
        switch error {
        case .noAuthenticator:
            away("there is no security key at a USB port, or its access is denied", "no_security_key")
        case .severalAuthenticators:
            away("there are several security keys: leave one plugged in", "several_security_keys")
        case .noPasskey: denied("the security key has no passkey of this account", "no_passkey")
        case .exists:
            CommandFailure("the security key has one already", status: ExitStatus.exists, code: "passkey_exists")
        case .cancelled: denied("the security key was not touched in time", "passkey_cancelled")
        case .notVerified:
            denied("the PIN is wrong, or the security key has none: see --key-pin-file", "passkey_not_verified")
        case .pinLocked: denied("the PIN of the security key is locked", "passkey_pin_locked")
        case .doesNotUnlock:
            denied("the passkey does not unlock the account: log in with the password", "passkey_does_not_unlock")
        case .unconfirmed:
            denied(
                "this device does not know the passkey or the userid: log in with the password", "passkey_unconfirmed")
        case .foreignSite: untrustworthy("the server asks for a passkey of another site", "foreign_site")
        case .failed: away("the security key failed", "security_key_failed")
        }
    }

    private static func failure(for error: APIError) -> CommandFailure {
        switch error {
        case .problem(let problem): failure(for: problem, status: ExitStatus.unavailable)
        case .transport(let error): failure(for: error)
        case .unexpectedReply:
            untrustworthy("the server sent an unexpected reply", "unexpected_reply")
        }
    }

    private static func failure(for problem: Problem, status: Int32) -> CommandFailure {
        var message = problem.title
        if let detail = problem.detail { message += ": \(detail)" }
        if let used = problem.used, let allowed = problem.allowed { message += " (\(used) of \(allowed))" }
        if let wait = problem.retryAfter { message += "; again in \(wait.components.seconds) s" }
        // The length is limited against a hostile server.
        return CommandFailure(
            VisibleText.visible(String(message.prefix(1_000))), status: status, code: problem.code.rawValue)
    }

    private static func failure(for error: TransportError) -> CommandFailure {
        switch error {
        case .pinMismatch:
            untrustworthy("the server's key is not pinned; nothing was sent", "pin_mismatch")
        case .untrustedCertificate:
            untrustworthy("the server's certificate is not trusted; nothing was sent", "untrusted_certificate")
        case .unacceptableReply: untrustworthy("the server does not use the protocol", "unacceptable_reply")
        case .unreachable: away("the server cannot be reached", "unreachable")
        case .timedOut:
            away(
                "the line is slow, or the server did not answer in time; received data is not sent again",
                "timed_out")
        case .connectionLost: away("the connection was lost", "connection_lost")
        case .cancelled: interrupted
        case .configuration(let fault):
            CommandFailure(fault.text, status: ExitStatus.configuration, code: "configuration")
        }
    }

    private static func failure(for error: StoreError) -> CommandFailure {
        switch error {
        case .inUse:
            CommandFailure(
                "another process uses this account's store", status: ExitStatus.busy, code: "store_in_use")
        case .unusable: store("the store or the file cannot be used", "store_unusable")
        case .exposedFile(let path, let mode):
            store(
                "others can read or write \(VisibleText.visible(path)) (mode 0\(String(mode, radix: 8))): chmod 600 it",
                "file_exposed")
        case .readOnly:
            store("the disk or the store's file is read-only; nothing was changed", "store_read_only")
        case .tooNew: store("the store belongs to a later version", "store_too_new")
        case .diskFull: store("the disk is full; nothing was changed", "disk_full")
        case .damaged: store("the store is damaged, or the disk fails", "store_damaged")
        }
    }

    private static func denied(_ message: String, _ code: String) -> CommandFailure {
        CommandFailure(message, status: ExitStatus.denied, code: code)
    }

    private static func untrustworthy(_ message: String, _ code: String) -> CommandFailure {
        CommandFailure(message, status: ExitStatus.untrustworthy, code: code)
    }

    private static func unreadable(_ message: String, _ code: String) -> CommandFailure {
        CommandFailure(message, status: ExitStatus.unreadable, code: code)
    }

    private static func away(_ message: String, _ code: String) -> CommandFailure {
        CommandFailure(message, status: ExitStatus.unavailable, code: code)
    }

    private static func store(_ message: String, _ code: String) -> CommandFailure {
        CommandFailure(message, status: ExitStatus.store, code: code)
    }
}

extension PlanShortage {
    /// The shortage as a sentence.
    var text: String {
        switch limit {
        case .items: "the plan has no room: \(counted(needed, "more item is", "more items are")) needed, \(free) free"
        case .itemBytes:
            "it is too long: encrypted it has \(counted(needed, "byte")), and the plan allows \(free) in an item"
        case .waitingBytes:
            "the server cannot be reached, and this device has no room for the file until then: "
                + "\(counted(needed, "more byte is", "more bytes are")) needed, \(free) free"
        case .bytes: "the plan has no room: \(counted(needed, "more byte is", "more bytes are")) needed, \(free) free"
        }
    }
}

extension DocumentFault {
    /// The fault of the line as a sentence.
    fileprivate var text: String {
        switch reason {
        case .notUTF8: "it is not UTF-8; nothing was imported"
        case .noBeginning:
            "the file is not an export that this version can read; nothing was imported"
        case .noDocument: "it is not a document; nothing was imported"
        case .wrongCount: "it has a wrong number of documents; nothing was imported"
        case .afterEnd: "it follows the last line; nothing was imported"
        case .noEnd: "the file ends here without its last line; nothing was imported"
        }
    }
}

extension StretchingRule.Refusal {
    /// The server's request that was rejected.
    fileprivate var text: String {
        switch self {
        case .algorithm: "another algorithm"
        case .saltPrefix: "a salt prefix that differs from the first contact"
        case .salt: "a salt that is not derived from the userid"
        case .iterations(let minimum): "fewer than \(minimum) iterations"
        case .tooManyIterations(let maximum): "more than \(maximum) iterations"
        case .keyLength: "another key length"
        case .host: "a salt prefix of another host"
        }
    }
}

extension ConfigurationFault {
    fileprivate var text: String {
        switch self {
        case .address: "the server's address is not https://host or https://host:port"
        case .pin(let pin):
            "the pin \(VisibleText.visible(String(pin.prefix(100)))) is not sha256// and the base64 of 32 bytes"
        case .certificate: "the server's certificate is not in PEM"
        case .rateLimit: "the limit for the rate is too low"
        case .request: "the request cannot be sent"
        case .system: "the system has no resources for connections"
        }
    }
}
