internal import Postgres

extension Application {
    /// Every statement that the service sends, by the name of its type.
    public static var statements: [(name: String, sql: String)] {
        [
            statement(ReadInstallation.self), statement(CreateInstallation.self), statement(RedrawDecoys.self),
            statement(ReadSchemaVersion.self),
            statement(FindKDFParameters.self), statement(FindLogin.self),
            statement(InsertLogin.self), statement(InsertAccount.self), statement(InsertSession.self),
            statement(Authenticate.self), statement(AuthenticateForWrite.self), statement(TouchSession.self),
            statement(OpenSession.self), statement(TrimSessions.self), statement(RemoveAllSessions.self),
            statement(Owned<FindUserid>.self), statement(LockAccountWholly.self),
            statement(FindCredentialRevision.self), statement(RecordSecurityEvent.self),
            statement(FindFailedAttempts.self), statement(RecordFailedAttempt.self),
            statement(RemoveFailedAttempts.self), statement(FindOldAttempts.self), statement(RemoveOldAttempts.self),
            statement(Owned<FindSecurityLog>.self), statement(FindOldEvents.self), statement(RemoveEvents.self),
            statement(ReplaceVerifier.self), statement(TakeUserid.self), statement(RemoveLogin.self),
            statement(MoveCredential.self), statement(FindAnySession.self),
            statement(Owned<FindKeyring>.self), statement(Guarded<WriteKeyring>.self),
            statement(RemoveSomeItems.self), statement(RemoveSomeDeletedContents.self),
            statement(RemoveSomeStagedItems.self), statement(RemoveSomeSecurityEvents.self),
            statement(RemoveSomeAccountShares.self), statement(RemoveShares.self),
            statement(FindInvitesUsedBy.self), statement(ForgetInvitee.self), statement(RemoveAccount.self),
            statement(FindTokenHashes.self), statement(ForgetFailedAttempts.self),
            statement(Owned<FindAccount>.self),
            statement(Owned<FindSessions>.self), statement(Guarded<RemoveSession>.self),
            statement(Guarded<RemoveOtherSessions>.self), statement(Guarded<RemoveCurrentSession>.self),
            statement(Owned<FindSecondFactor>.self), statement(EnrolSecondFactor.self),
            statement(Guarded<ConfirmSecondFactor>.self), statement(RemoveSecondFactor.self),
            statement(RemoveSecondFactorCodes.self), statement(InsertSecondFactorCodes.self),
            statement(CountSealedSecrets.self), statement(FindOutdatedSecrets.self),
            statement(ReplaceSealedSecret.self),
            statement(OpenSessionWithOneTimeCode.self), statement(OpenSessionWithRecoveryCode.self),
            statement(Owned<FindItem>.self), statement(Owned<FindItems>.self), statement(Owned<FindItemHeaders>.self),
            statement(Guarded<WriteItem>.self), statement(Guarded<BuryItem>.self),
            statement(Guarded<UnburyItem>.self), statement(Guarded<ApplyBatch>.self),
            statement(Owned<FindChanges>.self),
            statement(TakePurgeLock.self), statement(LockAccount.self),
            statement(FindEndedSessions.self), statement(RemoveSessions.self),
            statement(FindExpiredContents.self), statement(RemoveContents.self),
            statement(FindOldTombstones.self), statement(RemoveTombstones.self),
            statement(FindRotations.self), statement(InsertRotation.self), statement(Owned<FindRotation>.self),
            statement(RemoveRotation.self), statement(RemoveStaged.self), statement(Guarded<StageBatch>.self),
            statement(Guarded<RemoveStrays>.self), statement(Guarded<DiscardStaged>.self), statement(FindUnready.self),
            statement(TakeRevisions.self),
            statement(SwapItems.self), statement(ExpireContents.self), statement(CloseRotation.self),
            statement(FindExpiredRotations.self),
            statement(WriteRecovery.self), statement(DeleteRecovery.self), statement(RemoveRestrictedSessions.self),
            statement(FindRecovery.self), statement(LockRecoveringAccount.self), statement(OpenRecoverySession.self),
            statement(FindPlans.self), statement(SetPlan.self),
            statement(FindAccountOfUserid.self), statement(AssignPlan.self),
            statement(Owned<FindRevision>.self), statement(FindMovedRevisions.self),
            statement(TakeView.self), statement(CountViewsLeft.self), statement(FindManagedShare.self),
            statement(UpdateShare.self), statement(RemoveShare.self),
            statement(Guarded<InsertAccountShare>.self), statement(InsertAnonymousShare.self),
            statement(InsertShare.self), statement(Owned<FindAccountShares>.self), statement(FindShareHeaders.self),
            statement(LockShareOwner.self), statement(UpdateAccountShare.self), statement(RemoveAccountShares.self),
            statement(FindShareIDs.self), statement(SuspendShares.self),
            statement(FindEndedShares.self), statement(RemoveEndedShares.self),
            statement(AppendAudit.self), statement(FindAuditHead.self),
            statement(FindAuditEntries.self), statement(FindLatestAuditEntries.self),
        ]
    }

    private static func statement<S: Statement>(_ type: S.Type) -> (name: String, sql: String) {
        (name: String(describing: type), sql: type.sql)
    }
}
