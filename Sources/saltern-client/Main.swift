import CommandLineKit
import Foundation

/// `saltern-client`: a command for the client kit.
@main
struct Main {
    /// Not `async`: the main thread only waits.
    static func main() {
        let words = ProcessArguments.words
        // This memory contains passwords and keys, so core dumps must not be written. With a limit of 0 Linux would
        // still pass one to a program that takes dumps (core(5), `core_pattern`). With 1, too little for any file, it
        // does neither.
        var none = rlimit(rlim_cur: 1, rlim_max: 1)
        #if canImport(Glibc)
            setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        #else
            setrlimit(RLIMIT_CORE, &none)
        #endif
        // libcurl would write the keys of its connections to this file.
        unsetenv("SSLKEYLOGFILE")
        StandardDescriptors.occupy()
        // A closed output must not end the process during an operation.
        signal(SIGPIPE, SIG_IGN)
        // Output has no buffer. `exit` would run clean-up functions of libraries (OpenSSL, C++) in parallel to threads
        // that still free their memory. One of two thousand successful commands crashed in this way.
        Task.detached { _exit(await run(words)) }
        while true { pause() }
    }

    /// Runs a command. The first Ctrl-C stops it without loss, the second ends the process.
    private static func run(_ words: [String]) async -> Int32 {
        let (signals, continuation) = AsyncStream.makeStream(of: Int.self)
        let interruption = Interruption { count in
            if count > 1 { _exit(ExitStatus.interrupted) }
            continuation.yield(count)
        }
        var console = Console.process()
        console.wish = interruption.wish
        let task = Task { [console] in await CommandLineTool.client.run(words, console: console) }
        let cancelling = Task { for await _ in signals { task.cancel() } }
        defer { cancelling.cancel() }
        let status = await task.value
        withExtendedLifetime(interruption) {}
        return status
    }
}

extension CommandLineTool {
    /// `saltern-client` with all subcommands.
    static let client = CommandLineTool(
        "saltern-client", purpose: "encrypted notes and files, synced through a Saltern server.",
        notes: """
            Items are stored on this device: reading and writing them needs no network.
            `sync` sends and fetches changes. With --json every command prints one object,
            and an error is one object on standard error.

            \(ExitStatus.help)

            """,
        commands: [
            Register.self, LogIn.self, UnlockStore.self, LogOut.self, ShowStatus.self,
            ListItems.self, GetItem.self, PutItem.self, EditItem.self, DeleteItems.self, RestoreItems.self,
            ListVersions.self,
            DiscardChanges.self,
            SyncCommand.self, RestoreTrash.self, ListTrash.self,
            ShareItem.self, EndShare.self, ListShares.self, OpenLink.self,
            CreateVault.self, ListVaults.self, RenameVault.self, PreviewVault.self, JoinVault.self,
            InviteMember.self, ListInvitations.self, RevokeInvitation.self,
            ListMembers.self, RemoveMembers.self, ChangeRole.self, LeaveVault.self,
            HandOverVault.self, AcceptVault.self, RotateVault.self, SealWriter.self, DeleteVault.self,
            ChangePassword.self, ChangeUserid.self,
            CreateRecoveryCode.self, UseRecoveryCode.self, RemoveRecoveryCode.self,
            AddPasskey.self, ListPasskeys.self, RenamePasskey.self, RestrictPasskey.self, RemovePasskey.self,
            BeginSecondFactor.self, ConfirmSecondFactor.self, RenewSecondFactorCodes.self, EndSecondFactor.self,
            EndDevice.self, LoseDevice.self, ListDevices.self, ListEvents.self,
            RotateKeys.self, ExportItems.self, ImportItems.self, LeaveServer.self, ShowVersion.self,
        ],
        reportsJSON: true,
        variables: variables,
        explain: { Explanation.explain($0) })

    private static var variables: Set<String> {
        var variables: Set = ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "VISUAL", "EDITOR"]
        #if SOFTWARE_PASSKEYS
            variables.insert(SecurityKeyOption.variable)
        #endif
        return variables
    }
}

struct ShowVersion: Command {
    static let words = ["version"]
    static let summary = "print the version of this program"
    static let example = "saltern-client version"
    static let help = """
          --json                one object, for scripts

        `saltern-client --version` is the same.
        """

    private let asJSON: Bool

    init(_ arguments: inout Arguments) { asJSON = arguments.flag("--json") }

    func run(_ console: Console) async throws {
        let version = String(decoding: PackageResources.VERSION, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        try console.show(["version": version], asJSON: asJSON) { "saltern-client \(version)\n" }
    }
}
