import CommandLineKit
import SalternClient

/// A problem of a shared vault in the form for scripts.
struct VaultProblemRecord: Encodable {
    let kind: String
    /// The member that the problem is about.
    var member: MemberID?
    /// The number of edits or members.
    var count: Int?
    /// The number of the first entry that differs.
    var entry: Int?

    init(_ problem: SharedVaultProblem) {
        kind = problem.kind
        switch problem {
        case .fork(let number): entry = number
        case .anotherHistory(let id): member = id
        case .putAside(let number), .waitsForSeal(let number): count = number
        case .rolledBack, .invalidLog, .missingKey, .keysDue, .foreignKeys, .updateNeeded, .ended, .nearlyFull: break
        }
    }
}

extension SharedVaultProblem {
    /// The stable name of the problem, for scripts.
    var kind: String {
        switch self {
        case .fork: "fork"
        case .anotherHistory: "anotherHistory"
        case .rolledBack: "rolledBack"
        case .invalidLog: "invalidLog"
        case .keysDue: "keysDue"
        case .missingKey: "missingKey"
        case .foreignKeys: "foreignKeys"
        case .updateNeeded: "updateNeeded"
        case .ended: "ended"
        case .putAside: "putAside"
        case .waitsForSeal: "waitsForSeal"
        case .nearlyFull: "nearlyFull"
        }
    }

    /// True when the problem changes the command's status. Others are corrected by the next syncs.
    var wantsAttention: Bool {
        switch self {
        case .fork, .anotherHistory, .rolledBack, .invalidLog, .foreignKeys, .updateNeeded, .ended,
            .putAside, .nearlyFull:
            true
        case .missingKey, .keysDue, .waitsForSeal: false
        }
    }

    /// The problem as a sentence.
    func text(in vault: SharedVault) -> String {
        switch self {
        case .fork(let number):
            "the server has shown two histories of the members, which differ at entry \(number): nothing more is "
                + "written; export its items, and import them into a new vault"
        case .anotherHistory(let member):
            "the device of \(vault.name(of: member)) has another history of the members: compare "
                + "`saltern-client vault members --verify`"
        case .rolledBack: "the server had lost changes of the members; they were sent again"
        case .invalidLog:
            "the server's list of changes of the members is not valid: compare "
                + "`saltern-client vault members --verify`"
        case .keysDue: "your keys are to be replaced after a device was lost: the next sync does so"
        case .missingKey: "this device has no key yet: the next sync of a manager sends it"
        case .foreignKeys: "another device has replaced the keys of this member: nothing more is written"
        case .updateNeeded: "another member uses a later version: update this program to write"
        case .ended: "the membership has ended; the items stay readable on this device"
        case .putAside(let count):
            counted(count, "version is", "versions are") + " not shown: the authors were not permitted to write"
        case .waitsForSeal(let count):
            "the edits of \(counted(count, "former writer")) wait for a manager's next sync"
        case .nearlyFull: "its log is nearly full: continue in a new vault"
        }
    }
}
