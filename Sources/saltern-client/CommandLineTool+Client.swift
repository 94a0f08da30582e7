import CommandLineKit

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
            HandOverVault.self, AcceptVault.self, RotateVault.self, DeleteVault.self,
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
