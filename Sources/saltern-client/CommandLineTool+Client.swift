import CommandLineKit

extension CommandLineTool {
    /// `saltern-client` with every subcommand that it has.
    static let client = CommandLineTool(
        "saltern-client", purpose: "your encrypted items on a Saltern server, from a terminal.",
        notes: """
            Items are on this device from the first log-in on: what reads and writes them needs no network, and `sync` sends
            and fetches. With --json every command prints one object, and errors are one on standard error.

            \(ExitStatus.help)

            """,
        commands: [
            Register.self, LogIn.self, UnlockStore.self, LogOut.self, ShowStatus.self,
            ListItems.self, GetItem.self, PutItem.self, EditItem.self, DeleteItems.self, RestoreItems.self,
            ListVersions.self,
            DiscardChanges.self,
            SyncAccount.self, RestoreTrash.self, ListTrash.self,
            ShareItem.self, EndShare.self, ListShares.self, OpenLink.self,
            ChangePassword.self, ChangeUserid.self,
            CreateRecoveryCode.self, UseRecoveryCode.self, RemoveRecoveryCode.self,
            BeginSecondFactor.self, ConfirmSecondFactor.self, RenewSecondFactorCodes.self, EndSecondFactor.self,
            EndDevice.self, LoseDevice.self, ListDevices.self, ListEvents.self,
            RotateKeys.self, ExportItems.self, ImportItems.self, LeaveServer.self, ShowVersion.self,
        ],
        reportsJSON: true,
        variables: ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "VISUAL", "EDITOR"],
        explain: { Explanation.explain($0) })
}
