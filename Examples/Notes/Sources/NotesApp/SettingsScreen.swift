#if canImport(SwiftUI)
    import Foundation
    import NotesModel
    import SalternClient
    import SwiftUI

    /// The account and this device.
    struct SettingsScreen: View {
        let model: NotesModel
        @State private var password = ""
        @State private var newPassword = ""
        @State private var code: String?
        @State private var devices: [SessionDescription] = []

        var body: some View {
            Form {
                Section("In step") {
                    Text(model.account?.state.localizedDescription ?? "")
                    Button("Sync now") { model.perform { try await model.syncNow() } }
                    Button("Lock") { model.perform { try await model.lock() } }
                }
                Section("Devices") {
                    ForEach(devices, id: \.id) { device in
                        Button(device.current ? "This device" : "Log out \(device.device?.name ?? "a device")") {
                            model.perform { try await end(device.id) }
                        }
                        .disabled(device.current)
                    }
                }
                Section("Password") {
                    SecureField("Present password", text: $password)
                    SecureField("New password", text: $newPassword)
                    if model.wantsLogIn {
                        Button("Log in again") { model.perform { try await model.logInAgain(password) } }
                    }
                    Button("Change the password") {
                        model.perform { try await model.changePassword(from: password, to: newPassword) }
                    }
                    .disabled(newPassword.isEmpty)
                    Button("Make a code to print") {
                        model.perform { code = try await model.makeRecoveryCode(password) }
                    }
                    if let code { Text(code) }
                }
                Section("End") {
                    Button("Sign out") { model.perform { try await model.signOut() } }
                    Button("Sign out and lose what was not sent", role: .destructive) {
                        model.perform { try await model.signOut(discardingUnsentEdits: true) }
                    }
                    Button("Delete the account", role: .destructive) {
                        model.perform { try await model.deleteAccount(password) }
                    }
                }
            }
            .task { model.perform { devices = try await model.devices() } }
        }

        private func end(_ session: SessionID) async throws {
            try await model.endSession(session)
            devices = try await model.devices()
        }
    }
#endif
