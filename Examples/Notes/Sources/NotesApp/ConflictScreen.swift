#if canImport(SwiftUI)
    import NotesModel
    import SwiftUI

    /// Two versions of a note, of which the person keeps one or both.
    struct ConflictScreen: View {
        let model: NotesModel
        let copy: NotesModel.Entry
        @Environment(\.dismiss) private var dismiss

        var body: some View {
            Form {
                Section("This device") { Text(copy.note.text) }
                Section("The other device") { Text(other) }
                Button("Keep this device's") { settle(.mine) }
                Button("Keep the other's") { settle(.theirs) }
                Button("Keep both") { settle(.both) }
            }
        }

        private var other: String { model.entries.first { $0.id == copy.conflict?.item }?.note.text ?? "Deleted" }

        private func settle(_ choice: NotesModel.Choice) {
            model.perform {
                try await model.settle(copy, keeping: choice)
                dismiss()
            }
        }
    }
#endif
