import CommandLineKit
import SalternClient

extension SharedVaultError {
    /// The message, status and code of the command.
    var failure: CommandFailure {
        switch self {
        case .notSupported:
            CommandFailure("the server has no shared vaults", status: 1, code: "no_shared_vaults")
        case .notALink: Self.usage("an invitation has the form https://host/j/ID#SECRET")
        case .noSecret:
            Self.usage("the link's end is missing, the # and the secret after it: copy the whole link")
        case .brokenLink: Self.usage("the link's end is cut off or changed: copy the whole link")
        case .otherServer(let server):
            CommandFailure(
                "the invitation is of \(VisibleText.visible(server)): log in there, and see --account",
                status: ExitStatus.configuration, code: "other_server")
        case .codeRequired:
            CommandFailure(
                "the invitation has a code: see --code-file", status: ExitStatus.denied, code: "code_required")
        case .wrongCode, .invitationGoneOrWrongCode:
            CommandFailure(
                "the code is wrong, or the invitation is used up, expired or revoked", status: ExitStatus.denied,
                code: "wrong_code")
        case .invalidCode:
            CommandFailure(
                "a code is six words of the list: check the spelling", status: ExitStatus.unreadable,
                code: "malformed_code")
        case .invalidName:
            CommandFailure(
                "a name has 1 to 64 bytes, and no control or invisible characters", status: 1, code: "invalid_name")
        case .invitationGone:
            CommandFailure(
                "the invitation is used up, expired or revoked", status: ExitStatus.notFound, code: "invitation_gone")
        case .wrongVault:
            CommandFailure(
                "the server shows another vault than that of the link; nothing was sent",
                status: ExitStatus.untrustworthy, code: "wrong_vault")
        case .alreadyMember:
            CommandFailure(
                "this account is a member of the vault already", status: ExitStatus.exists, code: "already_member")
        case .unknownVault: Self.missing("there is no such shared vault")
        case .unknownMember: Self.missing("the shared vault has no such member")
        case .unknownInvitation: Self.missing("the shared vault has no such open invitation")
        case .ambiguousName:
            CommandFailure(
                "several shared vaults have this name: use the id", status: ExitStatus.notFound, code: "ambiguous")
        case .notPermitted: Self.notPermitted
        case .ownerProtected:
            CommandFailure(
                "the owner cannot leave, be lowered or removed: see saltern-client vault hand-over", status: 1,
                code: "owner_protected")
        case .noOffer:
            CommandFailure(
                "the owner does not offer the vault to this account", status: ExitStatus.notFound, code: "no_offer")
        case .nothingToSeal:
            CommandFailure("no edits of the member wait for a seal", status: 1, code: "nothing_to_seal")
        case .listMissing:
            CommandFailure(
                "the list of your earlier seal of the member is missing: sync, or let another manager seal",
                status: ExitStatus.unavailable, code: "list_missing")
        case .full:
            CommandFailure(
                "the vault has its maximum of members, open invitations or changes", status: 1, code: "vault_full")
        case .stopped:
            CommandFailure(
                "nothing is written to the vault: see saltern-client vault list", status: ExitStatus.untrustworthy,
                code: "vault_stopped")
        case .keyMissing:
            CommandFailure(
                "this device has no key of the vault yet: the next sync of a manager sends it; see --without-key",
                status: ExitStatus.unavailable, code: "key_missing")
        case .updateNeeded:
            CommandFailure(
                "another member uses a later version: update this program to write", status: 1, code: "update_needed")
        case .ownsVaults:
            CommandFailure(
                "the account owns shared vaults: see saltern-client vault hand-over, and leave --delete-vaults",
                status: 1, code: "owns_vaults")
        case .recovering:
            CommandFailure(
                "the server was restored from a backup: repeat after the next sync of the vault's owner",
                status: ExitStatus.unavailable, code: "vault_recovering")
        case .wrongClock:
            CommandFailure(
                "the clock of this device differs from the server's by more than five minutes: correct it",
                status: ExitStatus.configuration, code: "clock_skew")
        case .busy:
            CommandFailure(
                "others change the vault's members at the same time: repeat the command",
                status: ExitStatus.unavailable, code: "vault_busy")
        case .invalidExpiry: Self.usage("--expires must be at most 30d")
        case .invalidUses: Self.usage("--uses must be a whole number from 1 to 32")
        case .rejected(let reason):
            CommandFailure(
                "the rules of the vault reject it: \(VisibleText.visible(reason))", status: 1, code: "entry_refused")
        }
    }

    /// The failure for a change that the role does not allow.
    static let notPermitted = CommandFailure(
        "your role in the vault does not allow this", status: ExitStatus.denied, code: "not_permitted")

    private static func usage(_ message: String) -> CommandFailure {
        CommandFailure(message, status: CommandLineTool.usageStatus, code: "usage")
    }

    private static func missing(_ message: String) -> CommandFailure {
        CommandFailure(message, status: ExitStatus.notFound, code: "not_found")
    }
}
