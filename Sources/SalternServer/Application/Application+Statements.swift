internal import Postgres

extension Application {
    /// All statements of the service, each with the name of its type.
    public static var statements: [(name: String, sql: String)] {
        [
            // AccountAdministration
            statement(SetLock.self), statement(FindPlanOfAccount.self), statement(DescribeAccount.self),
            statement(FindLogins.self), statement(SummarizeAccounts.self), statement(FindLockedAccounts.self),
            statement(FindIterationsOfUserid.self),
            statement(FindNeverUsedAccounts.self), statement(ConfirmNeverUsed.self),
            // Account
            statement(LockAccount.self), statement(PlanForParameters.self), statement(LockAccountWholly.self),
            statement(KeepAccount.self),
            statement(LockShareOwner.self),
            // Accounts
            statement(InsertLogin.self), statement(InsertAccount.self), statement(InsertSession.self),
            statement(Owned<FindAccount>.self),
            // AuditLog
            statement(AppendAudit.self), statement(FindAuditHead.self), statement(FindAuditEntries.self),
            statement(FindLatestAuditEntries.self), statement(FindBackupTimes.self),
            // Audiences
            statement(StorePairwiseKey.self), statement(FindService.self), statement(FindServices.self),
            statement(InsertService.self), statement(RemoveService.self),
            statement(Owned<FindTokenSubject>.self), statement(FindPlanOfSession.self),
            // Credentials
            statement(AreDecoysDue.self), statement(SampleIterations.self), statement(ReplaceDecoys.self),
            statement(FindKDFParameters.self), statement(FindLogin.self),
            statement(Owned<FindUserid>.self),
            statement(FindCredentialRevision.self), statement(ReplaceVerifier.self),
            statement(NextDeviceGeneration.self), statement(TakeUserid.self),
            statement(RemoveLogin.self), statement(MoveCredential.self), statement(FindAnySession.self),
            statement(Owned<FindKeyHolders>.self), statement(MoveDeviceGeneration.self),
            // Deletion
            statement(RemoveSomeItems.self), statement(RemoveSomeDeletedContents.self),
            statement(RemoveSomeReplacedContents.self),
            statement(RemoveSomeStagedItems.self), statement(RemoveSomeSecurityEvents.self),
            statement(FindSomeAccountShares.self), statement(RemoveShares.self), statement(RemoveAccountContents.self),
            statement(RemoveAccount.self),
            statement(RemoveSessionsAltogether.self),
            statement(ForgetFailedAttempts.self),
            // Export
            statement(Owned<ExportAccountRow>.self), statement(Owned<ExportKeyring>.self),
            statement(Owned<ExportRecovery>.self), statement(Owned<ExportKeptKeyrings>.self),
            statement(Owned<ExportSecondFactor>.self),
            statement(Owned<ExportReceipt>.self), statement(Owned<ExportInvites>.self),
            statement(Owned<ExportSessions>.self), statement(Owned<ExportSecurityEvents>.self),
            statement(Owned<ExportItems>.self), statement(Owned<ExportDeletedContents>.self),
            statement(Owned<ExportVersions>.self),
            statement(Owned<ExportRotations>.self), statement(Owned<ExportStagedItems>.self),
            statement(Owned<ExportShareIDs>.self), statement(Owned<ExportShare>.self),
            // History
            statement(ReadDatabase.self), statement(FindRestoreMark.self), statement(BlockChanges.self),
            statement(MoveRevisionBase.self), statement(NoteFingerprint.self),
            statement(FindAccountsWithSessions.self),
            // Invites
            statement(InsertInvite.self), statement(ConsumeInvite.self), statement(FindInviteOfCode.self),
            statement(FindInviteOfAccount.self), statement(FindInvites.self), statement(FindInvite.self),
            statement(RevokeInvite.self),
            // Items
            statement(Owned<FindItem>.self), statement(Owned<FindItemPart>.self), statement(Owned<FindItems>.self),
            statement(Owned<FindItemHeaders>.self), statement(Owned<FindSliceEnd>.self),
            statement(Guarded<WriteItem>.self), statement(Guarded<ReplaceItem>.self),
            statement(Guarded<CreateItem>.self), statement(StoreNewItem.self), statement(Guarded<DecideDeletion>.self),
            statement(Guarded<DeleteOneItem>.self), statement(ArchiveContent.self), statement(WriteTombstone.self),
            statement(Guarded<RestoreItemRow>.self), statement(StoreRestored.self),
            statement(Guarded<DropContents>.self),
            // Keyrings
            statement(Owned<FindKeyring>.self), statement(Guarded<WriteKeyring>.self),
            statement(MoveKeyringRevision.self),
            // KeptKeyrings
            statement(Owned<FindReplaceableKeyrings>.self), statement(Owned<FindKeptKeyrings>.self),
            statement(InsertKeptKeyring.self), statement(DropKeptKeyrings.self), statement(RemoveKeptKeyrings.self),
            statement(RemoveKeptRecoveryKeyrings.self), statement(RemoveKeptKeyring.self),
            statement(RestoreKeyring.self), statement(RestoreRecoveryKeyring.self),
            // Versions
            statement(Owned<FindVersions>.self), statement(Owned<FindVersion>.self),
            statement(Owned<FindVersionPart>.self), statement(Owned<HasItem>.self),
            statement(MeasureVersions.self), statement(KeepVersions.self), statement(CountVersions.self),
            statement(DropVersions.self), statement(ExpireSomeVersions.self),
            statement(Guarded<ReplaceKeeping>.self), statement(KeepReplaced.self), statement(StoreReplacement.self),
            // LiveStream
            statement(Owned<FindRevision>.self), statement(FindMovedRevisions.self),
            statement(FindLiveSessions.self), statement(FindHashParts.self),
            // MasterKey
            statement(CountSealedSecrets.self), statement(FindOutdatedSecrets.self),
            statement(ReplaceSealedSecret.self), statement(FindSealedPairwiseKey.self),
            statement(ReplaceSealedPairwiseKey.self),
            // Plans
            statement(FindPlans.self), statement(SetPlan.self), statement(FindPlanUse.self), statement(RemovePlan.self),
            statement(FindAccountOfUserid.self), statement(KeepPlan.self),
            statement(AssignPlan.self),
            // Purge
            statement(TakePurgeLock.self), statement(ReleasePurgeLock.self), statement(HoldPurgeLock.self),
            statement(BeginPurgeSlice.self), statement(LimitLockWait.self),
            statement(FindEndedSessions.self), statement(RecordSessionEnds<RemoveSessions>.self),
            statement(RemoveSessions.self), statement(FindExpiredContents.self), statement(RemoveContents.self),
            statement(FindExpiredKeyrings.self), statement(RemoveExpiredKeyrings.self),
            statement(FindExpiredVersions.self), statement(RemoveVersions.self), statement(FindDueVersions.self),
            statement(FindOldTombstones.self), statement(RemoveTombstones.self), statement(FindExpiredRotations.self),
            statement(FindDueTombstones.self), statement(FindDueContents.self), statement(FindDueKeyrings.self),
            statement(FindDueRotations.self), statement(FindDueEvents.self), statement(FindDueAttempts.self),
            statement(FindDueShares.self),
            // Receipts
            statement(Guarded<WriteReceipt>.self), statement(StoreReceipt.self),
            // Recovery
            statement(WriteRecovery.self), statement(ReplaceRecoveryKeyring.self),
            statement(DeleteRecovery.self), statement(RemoveRestrictedSessions.self),
            statement(FindRecovery.self), statement(LockRecoveringAccount.self), statement(OpenRecoverySession.self),
            statement(StoreRecoverySession.self),
            statement(CompleteRecovery.self), statement(FindCompletedRecovery.self),
            // Rotations
            statement(FindRotations.self), statement(InsertRotation.self), statement(FindExtent.self),
            statement(Owned<FindRotation>.self),
            statement(RemoveRotation.self), statement(RemoveStaged.self), statement(Guarded<StageBatch>.self),
            statement(StoreStaged.self),
            statement(Guarded<RemoveStrays>.self), statement(Guarded<DiscardStaged>.self),
            statement(JoinWholeSets.self), statement(FindUnready.self), statement(TakeRevisions.self),
            statement(SwapItems.self), statement(ExpireSomeContents.self), statement(CloseRotation.self),
            // SecondFactor
            statement(Owned<FindSecondFactor>.self), statement(EnrolSecondFactor.self),
            statement(Guarded<ConfirmSecondFactor>.self), statement(StoreFirstCodes.self),
            statement(RemoveSecondFactor.self),
            statement(RemoveSecondFactorCodes.self), statement(InsertSecondFactorCodes.self),
            statement(OpenSessionWithOneTimeCode.self), statement(OpenSessionWithRecoveryCode.self),
            // Passkeys
            statement(Owned<FindPasskeys>.self), statement(Owned<FindPasskeyIDs>.self), statement(InsertPasskey.self),
            statement(Guarded<RenameStoredPasskey>.self), statement(DeletePasskey.self), statement(DeletePasskeys.self),
            statement(StoreUnlockBox.self), statement(ReplaceUnlockBox.self), statement(UseChallenge.self),
            statement(RemoveUnlockBox.self), statement(CountUsedChallenges.self),
            statement(ForgetExpiredChallenges.self), statement(RecordPasskeyUse.self),
            statement(Owned<FindUsablePasskey>.self), statement(FindPasskeyLogIn.self),
            statement(OpenSessionWithPasskey.self), statement(FindExpiredChallenges.self),
            statement(RemoveExpiredChallenges.self), statement(FindDueChallenges.self),
            statement(Owned<ExportPasskeys>.self),
            // SecurityEvents
            statement(RecordSecurityEvent.self), statement(DropOldEvents.self),
            statement(Owned<FindSecurityLog>.self), statement(FindOldEvents.self),
            statement(RemoveEvents.self),
            // Service
            statement(ReadInstallation.self), statement(CreateInstallation.self), statement(ReadSchemaVersion.self),
            statement(ReadDatabaseState.self), statement(ReadReplicationState.self), statement(ReadEveryNode.self),
            // Sessions
            statement(Authenticate.self), statement(AuthenticateForWrite.self), statement(TouchSession.self),
            statement(OpenSession.self), statement(StoreSession.self), statement(CountSessions.self),
            statement(FindSurplusSessions.self), statement(RecordSessionEnds<TrimSessions>.self),
            statement(TrimSessions.self),
            statement(RecordSessionEnds<RemoveAllSessions>.self), statement(RemoveAllSessions.self),
            statement(Owned<FindSessions>.self),
            statement(Guarded<RecordCallersSessionEnds<RemoveSession>>.self), statement(Guarded<RemoveSession>.self),
            statement(Guarded<RecordCallersSessionEnds<RemoveOtherSessions>>.self),
            statement(Guarded<RemoveOtherSessions>.self),
            statement(Guarded<RecordCallersSessionEnds<RemoveCurrentSession>>.self),
            statement(Guarded<RemoveCurrentSession>.self),
            // OutgoingEvents
            statement(FindDestinations.self), statement(InsertDestination.self),
            statement(RotateDestinationSecret.self), statement(DisableDestination.self),
            statement(RemoveDestination.self), statement(ReplaceDestinationSecrets.self),
            statement(QueueAccountEvent.self), statement(StoreAccountEvent.self), statement(EndQueues.self),
            statement(RemoveIdleQueues.self), statement(QueueOpenedSession.self), statement(StoreOpenedSession.self),
            statement(QueueEnds.self), statement(StoreEnds.self),
            statement(Guarded<QueueCallersEnds<RemoveSession>>.self),
            statement(Guarded<StoreCallersEnds<RemoveSession>>.self),
            statement(Guarded<QueueCallersEnds<RemoveOtherSessions>>.self),
            statement(Guarded<StoreCallersEnds<RemoveOtherSessions>>.self),
            statement(Guarded<QueueCallersEnds<RemoveCurrentSession>>.self),
            statement(Guarded<StoreCallersEnds<RemoveCurrentSession>>.self),
            statement(QueueChange.self), statement(StoreChange.self),
            statement(FindDueQueues.self), statement(FindTestQueue.self), statement(LeaseQueue.self),
            statement(FindLeasedEvents.self),
            statement(RemoveDelivered.self), statement(ExtendLease.self), statement(EndLease.self),
            statement(RemoveEndedQueue.self), statement(DelayQueue.self), statement(ParkEvent.self),
            statement(FindWaitingEvents.self), statement(FindParkedEvents.self),
            statement(FindEventsByID.self), statement(LockQueue.self),
            statement(RemoveConfirmed.self), statement(SettleQueue.self), statement(TakeDroppedEvents.self),
            statement(FindUndelivered.self), statement(FindEventKeys.self), statement(UnparkEvent.self),
            statement(WakeQueue.self), statement(FindAccountsOfDestination.self),
            statement(RemoveEventsOfDestination.self), statement(RemoveQueuesOfDestination.self),
            statement(FindOverdueEvents.self), statement(ParkOverdueEvents.self), statement(FindExpiredEvents.self),
            statement(RemoveExpiredEvents.self), statement(FindIdleQueues.self), statement(LockQueues.self),
            statement(SettleQueues.self),
            statement(RemoveEndedQueues.self),
            // Shares
            statement(TakeView.self), statement(CountViewsLeft.self), statement(FindManagedShare.self),
            statement(UpdateShare.self), statement(RemoveShare.self), statement(Guarded<AdmitShare>.self),
            statement(InsertAccountShare.self), statement(InsertAnonymousShare.self),
            statement(RefuseAnonymousShare.self), statement(InsertShare.self), statement(Owned<FindAccountShares>.self),
            statement(FindShareHeaders.self), statement(UpdateAccountShare.self),
            statement(RemoveAccountShares.self), statement(FindShareIDs.self), statement(SuspendShares.self),
            statement(FindEndedShares.self), statement(FindEndedAccountShares.self),
            statement(RemoveEndedShares.self), statement(RemoveUsedUpShare.self),
            // Statistics
            statement(SumUpAccounts.self), statement(CountLiveSessions.self), statement(CountTheRest.self),
            // Sync
            statement(Guarded<ApplyBatch>.self), statement(ArchiveContents.self), statement(WriteTombstones.self),
            statement(ReleaseContents.self),
            statement(Guarded<MeasurePuts>.self), statement(CountPuts.self),
            statement(WritePuts.self), statement(Owned<FindChanges>.self),
            statement(Owned<FindChangeHeaders>.self),
            // Throttling
            statement(FindFailedAttempts.self), statement(FindAllFailedAttempts.self),
            statement(ReserveAttempt.self), statement(ReleaseAttempt.self), statement(RecordFailedAttempt.self),
            statement(HoldFailedAttempts.self),
            statement(RemoveFailedAttempts.self), statement(RemoveFailuresOfDevices.self),
            statement(FindOldAttempts.self), statement(RemoveOldAttempts.self),
        ]
    }

    private static func statement<S: Statement>(_ type: S.Type) -> (name: String, sql: String) {
        (name: String(describing: type), sql: type.sql.text)
    }
}
