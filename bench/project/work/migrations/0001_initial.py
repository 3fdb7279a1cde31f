"""The table of effects."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Make it."""

    initial = True
    dependencies: list[tuple[str, str]] = []
    operations = [
        migrations.CreateModel(
            name="Effect",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.BigIntegerField()),
            ],
            options={"db_table": "once_bench_effect"},
        ),
    ]
