internal import Foundation

extension SyncState {
    /// The state as a sentence for the user, in English. The time of the last sync has the format of the user's locale.
    ///
    /// ```swift
    /// for await state in await vault.states() { print(state.localizedDescription) }
    /// ```
    public var localizedDescription: String {
        switch self {
        case .idle: "Nothing has been synced yet."
        case .locked: "The vault is locked. Enter the password."
        case .signedOut: "No account is logged in on this device."
        case .syncing: "Changes are being sent and fetched."
        case .inStep(let since): "The last sync was at \(since.formattedBriefly)."
        case .failed(let error, next: nil): error.localizedDescription
        case .failed(let error, let next?):
            "\(error.localizedDescription) The next attempt is at \(next.formattedBriefly)."
        }
    }
}

extension Notice {
    /// The event as a sentence for the user, in English. It does not name the item: show the title beside it.
    ///
    /// ```swift
    /// for notice in try await vault.notices() { print(notice.localizedDescription) }
    /// ```
    public var localizedDescription: String {
        switch kind {
        case .conflict:
            other == nil
                ? "The item was changed on this device and on another one."
                : "The item was changed on this device and on another one. This device's version is a copy beside it."
        case .keptAfterDeletion:
            "The item was deleted on another device and changed on this one. The change was kept."
        case .deletionUndone:
            "The item was deleted on this device and changed on another one. The change was kept."
        case .unreadable:
            other == nil
                ? "The server has a version of the item that this device cannot read. It was rejected."
                : "The server has a version of the item that this device cannot read. The change of this device is a copy beside it."
        case .unreadableChange:
            "A change of the item that only this device has cannot be read. It is not sent. Delete the item to get the server's version."
        case .rolledBack:
            other == nil
                ? "The server had an older version of the item. The newer one was kept."
                : "The server had an older version of the item. The newer one was kept, and the older one is a copy beside it."
        case .titleMissing: "The item has lost its title, on another device or on the server."
        case .timeWentBack: "The server's data was restored from a backup. Nothing was deleted on this device."
        case .keptUnlisted: "The server has lost the item. This device sends it again."
        case .quotaExceeded: "The plan has no room for the item. The change stays on this device until there is room."
        case .refused:
            "A change was rejected. It stays on this device: unsent, in the trash, or among the item's versions."
        case .massDeletion:
            "Many items were deleted on another device. They stay on this device until you agree to the deletions."
        case .keyringRolledBack:
            "The server has older keys than this device. If its data was restored from a backup, log in again and restore the keys."
        case .recoveryRemoved: "The account has no valid printed recovery code. Create a new one."
        case .passkeysStoppedUnlocking:
            "Passkeys of another app no longer unlock the account. They are still a second factor."
        case .recoveryCodeOutdated:
            "The printed recovery code is from before the keys were replaced. Create a new one, and destroy the old one."
        }
    }
}

extension Date {
    /// The time, with the date unless it is today.
    fileprivate var formattedBriefly: String {
        formatted(date: Calendar.current.isDateInToday(self) ? .omitted : .abbreviated, time: .shortened)
    }
}
