import CommandLineKit

extension CommandLineTool {
    static let saltern = CommandLineTool(
        "saltern", purpose: "an account and sync server that never receives a password.",
        notes: """
            Settings are environment variables: see `saltern serve --help`. Commands that
            manage the database connect with SALTERN_OWNER_DATABASE_URL, the role that owns
            the schema, or with SALTERN_DATABASE_URL. Each variable can name a file instead:
            SALTERN_OWNER_DATABASE_URL_FILE and so on.

            """,
        commands: [
            Serve.self, ReloadServer.self,
            MigrateUp.self, MigrateFinish.self, MigrateDistribute.self, MigrateStatus.self, MigrateVerify.self,
            CreateCertificate.self, ShowPins.self, ExportCertificate.self, RotateCertificate.self,
            RenewCertificate.self, InstallCertificate.self, CheckCertificate.self,
            CreateMasterKey.self, ListMasterKeys.self, RotateMasterKey.self, ResealSecrets.self, PruneMasterKeys.self,
            CreateSigningKey.self, ListSigningKeys.self, RotateSigningKey.self, PruneSigningKeys.self,
            ListAccounts.self, ShowAccount.self, ListAccountEvents.self, ListAccountSessions.self, LockAccount.self,
            UnlockAccount.self,
            EndSessions.self, SetAccountPlan.self, RemoveAccountSecondFactor.self, RestoreAccountKeyring.self,
            DeleteAccount.self,
            ListPlans.self, SetPlanLimits.self, RemovePlanCommand.self, ShowStatistics.self, PurgeNow.self,
            BackUpDatabase.self, RestoreDatabase.self, TellRestored.self,
            CreateInvites.self, ListInvites.self, RevokeInvite.self,
            CreateService.self, ListServices.self, RemoveServiceCommand.self,
            CreateDestination.self, ListDestinations.self, RotateDestination.self, RemoveDestinationCommand.self,
            ListEvents.self, RetryEvents.self, DropEvents.self,
            ListAudit.self, VerifyAudit.self,
            CheckHealth.self, ExamineInstallation.self, ListStatements.self, ShowVersion.self,
        ])
}
