import CommandLineKit

extension CommandLineTool {
    /// `saltern` with every subcommand that it has.
    static let saltern = CommandLineTool(
        "saltern", purpose: "an account and credential server that never sees a password.",
        notes: "Every setting is an environment variable SALTERN_…; `saltern serve --help` lists them.",
        commands: [
            Serve.self, ReloadServer.self,
            MigrateUp.self, MigrateFinish.self, MigrateDistribute.self, MigrateStatus.self, MigrateVerify.self,
            CreateCertificate.self, ShowPins.self, ExportCertificate.self, RotateCertificate.self,
            RenewCertificate.self, InstallCertificate.self, CheckCertificate.self,
            CreateMasterKey.self, ListMasterKeys.self, RotateMasterKey.self, ResealSecrets.self, PruneMasterKeys.self,
            ListAccounts.self, ShowAccount.self, ListAccountEvents.self, ListAccountSessions.self, LockAccount.self,
            UnlockAccount.self,
            EndSessions.self, SetAccountPlan.self, RemoveAccountSecondFactor.self, RestoreAccountKeyring.self,
            DeleteAccount.self,
            ListPlans.self, SetPlanLimits.self, RemovePlanCommand.self, ShowStatistics.self, PurgeNow.self,
            BackUpDatabase.self, RestoreDatabase.self, TellRestored.self,
            CreateInvites.self, ListInvites.self, RevokeInvite.self,
            ListAudit.self, VerifyAudit.self,
            CheckHealth.self, ExamineInstallation.self, ListStatements.self, ShowVersion.self,
        ])
}
